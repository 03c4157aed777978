<?php
// Logs in by mysqlnd, through mysqli or PDO, a line of WAY USER PASSWORD each.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
while (($line = fgets(STDIN)) !== false) {
    [$way, $user, $password] = explode(' ', trim($line));
    $password = $password === '-' ? '' : $password;
    $unix = $way === 'unix' ? getenv('DB_SOCKET') : null;
    [$host, $port] = [getenv('DB_HOST'), (int) getenv('DB_PORT')];
    try {
        if ($argv[1] === 'pdo') {
            $place = $unix ? "unix_socket=$unix" : "host=$host;port=$port";
            $db = new PDO("mysql:$place", $user, $password);
            $one = (int) $db->query('SELECT 1')->fetchColumn();
        } else {
            $db = new mysqli($unix ? null : $host, $user, $password, '', $unix ? 0 : $port, $unix);
            $one = (int) $db->query('SELECT 1')->fetch_row()[0];
        }
        echo $one === 1 ? "in\n" : "odd\n";
        $db = null;
    } catch (PDOException | mysqli_sql_exception $error) {
        echo $error->getCode(), "\n";
    }
}
