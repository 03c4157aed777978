<?php
// Stored procedures by mysqli and PDO: several results, OUT parameters, errors behind a result.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[$user, $password, $database] = [getenv('DB_USER'), getenv('DB_PASSWORD'), getenv('DB_NAME')];
const PROCEDURES = [
    'DROP PROCEDURE IF EXISTS php_divide',
    "CREATE PROCEDURE php_divide(IN a INT, INOUT b INT, OUT rest INT)
     BEGIN
       SELECT a, b;
       SELECT 'end' AS word WHERE a > 0;
       SET rest = a MOD b, b = a DIV b;
     END",
    'DROP PROCEDURE IF EXISTS php_fails',
    "CREATE PROCEDURE php_fails() BEGIN SELECT 1 AS one; SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 3333, MESSAGE_TEXT = 'no more'; END",
    'DROP FUNCTION IF EXISTS php_twice',
    'CREATE FUNCTION php_twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2',
];

function same(mixed $expected, mixed $got): void {
    if ($expected != $got) throw new Exception('expected ' . json_encode($expected) . ', got ' . json_encode($got));
}
function refused(int $number, callable $action): void {
    try {
        $action();
    } catch (mysqli_sql_exception $e) {
        same($number, $e->getCode());
        return;
    } catch (PDOException $e) {
        same($number, $e->errorInfo[1]);
        return;
    }
    throw new Exception("nothing gave error $number");
}

function by_mysqli(mysqli $db): void {
    foreach (PROCEDURES as $sql) $db->query($sql);
    $db->query('SET @b = 3');
    $db->multi_query('CALL php_divide(20, @b, @rest); SELECT @b, @rest');
    $results = [];
    do {
        if ($result = $db->store_result()) $results[] = $result->fetch_all();
    } while ($db->more_results() && $db->next_result());
    same([[[20, 3]], [['end']], [[6, 2]]], $results);

    // By a prepared statement. mysqlnd doesn't ask for the values of OUT parameters.
    $statement = $db->prepare('CALL php_divide(?, ?, @rest)');
    foreach ([[17, 5, 2], [0, 5, 0]] as [$a, $b, $left]) {
        $statement->bind_param('ii', $a, $b);
        $statement->execute();
        $results = [];
        do {
            if ($result = $statement->get_result()) $results[] = $result->fetch_all();
        } while ($statement->more_results() && $statement->next_result());
        $ends = $a > 0 ? [['end']] : [];
        same([[[$a, $b]], $ends], $results);
        same([[$left]], $db->query('SELECT @rest')->fetch_all());
    }
    $statement->close();

    $db->multi_query('CALL php_fails()');
    same([[1]], $db->store_result()->fetch_all());
    refused(3333, fn () => $db->next_result());
    same([[8]], $db->query('SELECT php_twice(4)')->fetch_all());

    // mysqlnd has room for a column's name of 4 KiB.
    foreach (["'%s'", "UPPER('%s')"] as $expression) {
        $row = $db->query('SELECT ' . sprintf($expression, str_repeat('X', 5000)))->fetch_row();
        same([str_repeat('X', 5000)], $row);
    }
}

function by_pdo(PDO $db): void {
    foreach (PROCEDURES as $sql) $db->exec($sql);
    $db->exec('SET @b = 3');
    $call = $db->prepare('CALL php_divide(?, @b, @rest)');
    foreach ([[20, 6, 2], [20, 3, 2]] as [$a, $quotient, $left]) {
        $call->execute([$a]);
        $results = [];
        do {
            // Behind the last result is CALL's own OK, which PDO takes for one without rows.
            if ($rows = $call->fetchAll(PDO::FETCH_NUM)) $results[] = $rows;
        } while ($call->nextRowset());
        same(2, count($results));
        same([['end']], $results[1]);
        $call->closeCursor();
        same([[$quotient, $left]], $db->query('SELECT @b, @rest')->fetchAll(PDO::FETCH_NUM));
    }
    $call = $db->prepare('CALL php_fails()');
    $call->execute();
    same([[1]], $call->fetchAll(PDO::FETCH_NUM));
    refused(3333, fn () => $call->nextRowset());
    $call = null;
    $twice = $db->prepare('SELECT php_twice(?)');
    $twice->execute([21]);
    same(42, $twice->fetchColumn());

    // A name that is longer than mysqlnd has room for, where PDO puts values into the text.
    $long = $db->prepare('SELECT ?, LENGTH(?)');
    $long->execute([str_repeat('x', 5000), str_repeat('x', 5000)]);
    same([str_repeat('x', 5000), 5000], $long->fetch(PDO::FETCH_NUM));

    // Prepared, too, it tells of the statement before.
    $db->exec('DROP TABLE IF EXISTS php_absent');
    same(1051, $db->query('SHOW WARNINGS')->fetchAll(PDO::FETCH_NUM)[0][1]);
}

$socket = getenv('DB_SOCKET');
by_mysqli(new mysqli('localhost', $user, $password, $database, 0, $socket));
by_mysqli(new mysqli('127.0.0.1', $user, $password, $database, (int)getenv('DB_PORT')));
foreach ([true, false] as $emulates) {
    $options = [PDO::ATTR_EMULATE_PREPARES => $emulates, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION];
    by_pdo(new PDO("mysql:unix_socket=$socket;dbname=$database", $user, $password, $options));
}
print "passed\n";
