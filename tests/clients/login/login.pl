# Logs in by DBD::mysql or DBD::MariaDB, a line of WAY USER PASSWORD each.
use strict;
use warnings;
use DBI;

$| = 1;
my $driver = $ARGV[0];
my $prefix = lc $driver;
while (my $line = <STDIN>) {
    my ($way, $user, $password) = split ' ', $line;
    my $place = $way eq 'unix' ? "${prefix}_socket=$ENV{DB_SOCKET}" : "host=$ENV{DB_HOST};port=$ENV{DB_PORT}";
    my $db = DBI->connect("dbi:$driver:$place", $user, $password eq '-' ? '' : $password, { PrintError => 0, RaiseError => 0 });
    if (!$db) {
        print DBI->err, "\n";
        next;
    }
    my ($one) = $db->selectrow_array('SELECT 1');
    print $one == 1 ? "in\n" : "odd\n";
    $db->disconnect;
}
