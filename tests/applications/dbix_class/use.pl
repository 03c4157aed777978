# DBIx::Class: a schema deployed from its classes, result sets, populated rows, transactions.
use strict;
use warnings;
use utf8;

package Shop::Result::Artist;
use base 'DBIx::Class::Core';
__PACKAGE__->load_components('InflateColumn::DateTime');
__PACKAGE__->table('artist');
__PACKAGE__->add_columns(
    id   => { data_type => 'integer', is_auto_increment => 1 },
    name => { data_type => 'varchar', size => 80 },
    born => { data_type => 'datetime', is_nullable => 1 },
);
__PACKAGE__->set_primary_key('id');
__PACKAGE__->add_unique_constraint(name_once => ['name']);
__PACKAGE__->has_many(records => 'Shop::Result::Record', 'artist_id');

package Shop::Result::Record;
use base 'DBIx::Class::Core';
__PACKAGE__->table('record');
__PACKAGE__->add_columns(
    id        => { data_type => 'integer', is_auto_increment => 1 },
    artist_id => { data_type => 'integer', is_foreign_key => 1 },
    title     => { data_type => 'varchar', size => 100 },
    price     => { data_type => 'decimal', size => [ 8, 2 ] },
);
__PACKAGE__->set_primary_key('id');
__PACKAGE__->belongs_to(artist => 'Shop::Result::Artist', 'artist_id');

package Shop;
use base 'DBIx::Class::Schema';
__PACKAGE__->register_class(Artist => 'Shop::Result::Artist');
__PACKAGE__->register_class(Record => 'Shop::Result::Record');

package main;
use DateTime;

sub check { my ($holds, $seen) = @_; die join(' ', 'not so at', (caller)[2], $seen // '', "\n") unless $holds }

my $options = { RaiseError => 1, quote_names => 1, mysql_enable_utf8mb4 => 1 };
for my $server_prepare (0, 1) {
    my $schema = Shop->connect("dbi:mysql:database=$ENV{DB_NAME};host=$ENV{DB_HOST};port=$ENV{DB_PORT};mysql_server_prepare=$server_prepare", $ENV{DB_USER}, $ENV{DB_PASSWORD}, $options);
    $schema->deploy({ add_drop_table => 1 });
    my $ann = $schema->resultset('Artist')->create({ name => 'Ann 🐬', born => DateTime->new(year => 2001, month => 2, day => 3, hour => 4) });
    $schema->resultset('Record')->populate([ [qw(artist_id title price)], map { [ $ann->id, "record $_", $_ / 4 ] } 0 .. 99 ]);
    $ann->discard_changes;
    check($ann->name eq 'Ann 🐬' && $ann->born->hour == 4, $ann->name);
    my $dear = $ann->records->search({ price => { '>', 10 } }, { order_by => { -desc => 'price' }, rows => 3, page => 2 });
    check(join('|', $dear->get_column('title')->all) eq 'record 96|record 95|record 94');
    check($ann->records->get_column('price')->sum == 1237.5);
    my $joined = $schema->resultset('Record')->search({ 'artist.name' => { -like => 'Ann%' } }, { prefetch => 'artist', rows => 2, order_by => 'me.id' });
    check(($joined->all)[1]->artist->id == $ann->id);
    my $sub = $schema->resultset('Artist')->search({ id => { -in => $ann->records->search({ title => 'record 5' })->get_column('artist_id')->as_query } });
    check($sub->count == 1);
    eval { $schema->resultset('Artist')->create({ name => 'Ann 🐬' }); 1 } and die "a second Ann\n";
    check($@ =~ /Duplicate entry/, $@);
    eval { $schema->txn_do(sub { $ann->records->search(undef, { for => 'update' })->all; $ann->records->delete; die "back\n" }) };
    check($@ =~ /back/ && $ann->records->count == 100, $@);
    $schema->txn_do(sub {
        $schema->svp_begin('a');
        $ann->records->delete;
        $schema->svp_rollback('a');
    });
    check($ann->records->count == 100);
    my $found = $schema->resultset('Artist')->update_or_create({ name => 'Ann 🐬', born => undef }, { key => 'name_once' });
    check($found->id == $ann->id);
    $ann->delete;
    check($schema->resultset('Record')->count == 0);
    $schema->storage->dbh->do('DROP TABLE record, artist');
}
