<?php
// TLS and compression by mysqlnd. It compresses when it is told to, whether the server offers that or not.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$pem = getenv('DB_CERTIFICATES');
const LENGTH = 3000000;

function connect(string $user, int $flags, ?array $files): mysqli {
    $db = mysqli_init();
    if ($files) $db->ssl_set($files[0], $files[1], $files[2], null, null);
    $db->real_connect('127.0.0.1', $user, 'right', null, (int)getenv('DB_PORT'), null, $flags);
    return $db;
}
function value(mysqli $db, string $sql): string { return $db->query($sql)->fetch_row()[0]; }
function status(mysqli $db, string $name): string { return $db->query("SHOW STATUS LIKE '$name'")->fetch_row()[1]; }
function refused(callable $action): void {
    try { $action(); } catch (mysqli_sql_exception) { return; }
    throw new Exception('nothing refused it');
}

$unverified = MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;
$verified = MYSQLI_CLIENT_SSL;
$files = [null, null, "$pem/ca.pem"];
$certificate = ["$pem/client-key.pem", "$pem/client-cert.pem", "$pem/ca.pem"];
foreach ([[$unverified, null], [$verified, $files], [$verified | MYSQLI_CLIENT_COMPRESS, $files]] as [$flags, $with]) {
    $began = microtime(true);
    $db = connect('encrypted', $flags, $with);
    if (!str_starts_with(status($db, 'Ssl_cipher'), 'TLS_AES_')) throw new Exception('not encrypted');
    $wants = $flags & MYSQLI_CLIENT_COMPRESS ? 'ON' : 'OFF';
    if (status($db, 'Compression') !== $wants) throw new Exception("compression isn't $wants");
    if (strlen(value($db, "SELECT REPEAT('x', " . LENGTH . ')')) !== LENGTH) throw new Exception('a result');
    if (value($db, "SELECT LENGTH('" . str_repeat('y', LENGTH) . "') AS n") != LENGTH) throw new Exception('a statement');
    if (microtime(true) - $began > 10) throw new Exception('it has waited for something');
}
refused(fn () => @connect('encrypted', 0, null));
refused(fn () => @connect('encrypted', $verified, [null, null, "$pem/other.pem"]));
foreach (['certified', 'named'] as $user) {
    refused(fn () => @connect($user, $verified, $files));
    connect($user, $verified, $certificate);
}
print "passed\n";
