#!/usr/bin/perl
# Perl's drivers over the C library: connecting, every type, prepared statements here and at the server, transactions.
use strict;
use warnings;
use DBI;

my $checks = 0;

sub is {
    my ($got, $wanted, $what) = @_;
    $checks++;
    $got = 'undef' unless defined $got;
    die "$what: '$got' is not '$wanted'\n" unless $got eq $wanted;
}

my @columns = (
    [i => 'INT', '-7'], [u => 'BIGINT UNSIGNED', '18446744073709551615'], [d => 'DOUBLE', '0.5'],
    [n => 'DECIMAL(20,4)', '-12345678901234.5678'], [y => 'YEAR', '2024'], [dt => 'DATE', '2024-02-29'],
    [tm => 'TIME(3)', '-12:34:56.789'], [ts => 'DATETIME(6)', '2024-02-29 23:59:59.123456'],
    [c => 'CHAR(10)', 'char'], [v => 'VARCHAR(100)', "it's \\ \"quoted\""], [b => 'VARBINARY(100)', "\0\x01\xFF"],
    [t => 'TEXT', 'x' x 70000], [e => "ENUM('small','large')", 'large'], [s => "SET('a','b','c')", 'a,c'],
);
$columns[11][1] = 'MEDIUMTEXT';

for my $driver (qw(mysql MariaDB)) {
    for my $at_server (0, 1) {
        my $place = $ENV{DB_SOCKET} ? "${driver}_socket=$ENV{DB_SOCKET}" : "host=$ENV{DB_HOST};port=$ENV{DB_PORT}";
        $place = "host=$ENV{DB_HOST};$place" if $ENV{DB_SOCKET};
        my $prefix = lc $driver;
        $place =~ s/^(.*?)\Q$driver\E_socket/$1${prefix}_socket/;
        my $db = DBI->connect("DBI:$driver:database=$ENV{DB_NAME};$place", $ENV{DB_USER}, $ENV{DB_PASSWORD},
            { RaiseError => 1, PrintError => 0, "${prefix}_server_prepare" => $at_server });
        $db->do('DROP TABLE IF EXISTS perl_types');
        $db->do('CREATE TABLE perl_types (id INT PRIMARY KEY AUTO_INCREMENT, '
            . join(', ', map { "$_->[0] $_->[1]" } @columns) . ') CHARACTER SET utf8mb4');
        my $insert = $db->prepare('INSERT INTO perl_types (' . join(', ', map { $_->[0] } @columns) . ') VALUES ('
            . join(', ', ('?') x @columns) . ')');
        for my $at (0 .. $#columns) {
            my $is_bytes = $columns[$at][0] eq 'b';
            $insert->bind_param($at + 1, $columns[$at][2], $is_bytes ? DBI::SQL_VARBINARY() : DBI::SQL_VARCHAR());
        }
        is($insert->execute, 1, 'inserted');
        is($db->last_insert_id(undef, undef, 'perl_types', 'id'), 1, 'the first id');
        is($insert->execute((undef) x @columns), 1, 'NULLs inserted');
        my $select = $db->prepare('SELECT * FROM perl_types WHERE id >= ? ORDER BY id');
        for my $round (1, 2) {
            $select->execute(1);
            is($select->rows, 2, 'rows');
            is($select->{NAME}[1], 'i', 'a name');
            is($select->{NUM_OF_FIELDS}, 1 + @columns, 'fields');
            my $row = $select->fetchrow_arrayref;
            is($row->[$_ + 1], $columns[$_][2], "$driver, prepared at the server $at_server: $columns[$_][1]") for 0 .. $#columns;
            $row = $select->fetchrow_arrayref;
            is($row->[$_ + 1], 'undef', "NULL of $columns[$_][1]") for 0 .. $#columns;
            is($select->fetchrow_arrayref, 'undef', 'the end');
        }
        is($db->do('UPDATE perl_types SET i = i + ? WHERE id = ?', undef, 10, 1), 1, 'updated');
        is($db->selectrow_array('SELECT i FROM perl_types WHERE id = 1'), 3, 'the new value');
        is($db->selectrow_array('SELECT ' . $db->quote("it's")), "it's", 'quoted');
        $db->begin_work;
        $db->do('DELETE FROM perl_types');
        $db->rollback;
        is($db->selectrow_array('SELECT COUNT(*) FROM perl_types'), 2, 'rolled back');
        eval { $db->do('SELECT * FROM no_such_table') };
        is($db->err, 1146, 'an error number');
        is($db->state, '42S02', 'SQLSTATE');
        is($db->ping ? 1 : 0, 1, 'ping');
        $select->finish;
        $db->disconnect;
    }
}
print "$checks checks\n";
