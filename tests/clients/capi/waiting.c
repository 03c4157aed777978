/* The non-blocking calls: what they answer, and that they return where they would wait. */
#include <errno.h>
#include <mysql.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

/* How often a call had to wait. */
static int waits;

/* Waits for what the call on this connection waits for: what has come. */
static int await(MYSQL *mysql, int events) {
    struct pollfd polled = {.fd = mysql_get_socket(mysql)};
    int timeout = events & MYSQL_WAIT_TIMEOUT ? (int)mysql_get_timeout_value_ms(mysql) : -1;
    int come = 0;
    polled.events = (events & MYSQL_WAIT_READ ? POLLIN : 0) | (events & MYSQL_WAIT_WRITE ? POLLOUT : 0);
    waits++;
    if (poll(&polled, 1, timeout) == 0) return MYSQL_WAIT_TIMEOUT;
    if (polled.revents & (POLLIN | POLLHUP | POLLERR)) come |= MYSQL_WAIT_READ;
    if (polled.revents & POLLOUT) come |= MYSQL_WAIT_WRITE;
    return come & events ? come & events : events & ~MYSQL_WAIT_TIMEOUT;
}

/* A call to its end. */
#define CALL(mysql, name, ret, on, ...) do { \
        int events_ = name##_start(ret, on, ##__VA_ARGS__); \
        while (events_) events_ = name##_cont(ret, on, await(mysql, events_)); \
    } while (0)

static MYSQL *opened(unsigned int read_timeout_s) {
    MYSQL *mysql = mysql_init(NULL), *connected = NULL;
    mysql_options(mysql, MYSQL_OPT_NONBLOCK, 0);
    if (read_timeout_s) mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &read_timeout_s);
    CALL(mysql, mysql_real_connect, &connected, mysql, *env("DB_HOST") ? env("DB_HOST") : NULL,
         env("DB_USER"), env("DB_PASSWORD"), NULL, atoi(env("DB_PORT")),
         *env("DB_SOCKET") ? env("DB_SOCKET") : NULL, CLIENT_MULTI_STATEMENTS);
    if (!connected) {
        printf("no connection: %u %s\n", mysql_errno(mysql), mysql_error(mysql));
        exit(1);
    }
    return mysql;
}

static void query(MYSQL *mysql, const char *sql) {
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;
    int failed = -1, events;
    CALL(mysql, mysql_real_query, &failed, mysql, sql, strlen(sql));
    printf("%s: %d %u", sql, failed, mysql_errno(mysql));
    if (!failed && mysql_field_count(mysql)) {
        CALL(mysql, mysql_store_result, &result, mysql);
        while ((row = mysql_fetch_row(result)) != NULL) printf(" %s", row[0] ? row[0] : "NULL");
        events = mysql_free_result_start(result);
        while (events) events = mysql_free_result_cont(result, await(mysql, events));
    }
    printf("\n");
}

/* Two statements wait, on this thread, for what this thread does on a third connection. */
static void at_once(void) {
    MYSQL *mysql[3];
    int events[2], failed[2], at;
    for (at = 0; at < 3; at++) mysql[at] = opened(0);
    query(mysql[2], "SELECT GET_LOCK('waiting.c 0', 0), GET_LOCK('waiting.c 1', 0)");
    events[0] = mysql_query_start(&failed[0], mysql[0], "SELECT GET_LOCK('waiting.c 0', 60)");
    events[1] = mysql_query_start(&failed[1], mysql[1], "SELECT GET_LOCK('waiting.c 1', 60)");
    printf("suspended: %d %d\n", !!events[0], !!events[1]);
    for (at = 1; at >= 0; at--) {
        MYSQL_RES *result;
        query(mysql[2], at ? "SELECT RELEASE_LOCK('waiting.c 1')" : "SELECT RELEASE_LOCK('waiting.c 0')");
        while (events[at]) events[at] = mysql_query_cont(&failed[at], mysql[at], await(mysql[at], events[at]));
        result = mysql_store_result(mysql[at]);
        printf("ended: %d %d %s\n", at, failed[at], result ? mysql_fetch_row(result)[0] : mysql_error(mysql[at]));
        mysql_free_result(result);
    }
    for (at = 0; at < 3; at++) {
        int closing = mysql_close_start(mysql[at]);
        while (closing) closing = mysql_close_cont(mysql[at], await(mysql[at], closing));
    }
}

/* Rows one by one, as they come. */
static void row_by_row(MYSQL *mysql) {
    MYSQL_RES *result;
    MYSQL_ROW row = NULL;
    unsigned long rows = 0, bytes = 0;
    int failed = -1, events;
    CALL(mysql, mysql_query, &failed, mysql,
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
         "SELECT REPEAT('x', 10000) FROM n");
    result = mysql_use_result(mysql);
    do {
        CALL(mysql, mysql_fetch_row, &row, result);
        if (row) rows++, bytes += mysql_fetch_lengths(result)[0];
    } while (row);
    events = mysql_free_result_start(result);
    while (events) events = mysql_free_result_cont(result, await(mysql, events));
    printf("row by row: %d %lu %lu\n", failed, rows, bytes);
}

/* A statement that is larger than any buffer on its way. */
static void large(MYSQL *mysql) {
    static char sql[6000000];
    MYSQL_RES *result = NULL;
    int failed = -1;
    memset(sql, 'x', sizeof sql);
    memcpy(sql, "SELECT LENGTH('", 15);
    memcpy(sql + sizeof sql - 2, "')", 2);
    CALL(mysql, mysql_real_query, &failed, mysql, sql, sizeof sql);
    CALL(mysql, mysql_store_result, &result, mysql);
    printf("large: %d %s\n", failed, result ? mysql_fetch_row(result)[0] : mysql_error(mysql));
    mysql_free_result(result);
}

static void prepared(MYSQL *mysql) {
    static const char sql[] = "SELECT ? + 1, SLEEP(0.1)";
    MYSQL_STMT *stmt = mysql_stmt_init(mysql);
    MYSQL_BIND in, out[2];
    int number = 41, failed = -1, got = 0, slept = 0;
    my_bool closed = -1;
    memset(&in, 0, sizeof in);
    memset(out, 0, sizeof out);
    in.buffer_type = out[0].buffer_type = out[1].buffer_type = MYSQL_TYPE_LONG;
    in.buffer = &number;
    out[0].buffer = &got;
    out[1].buffer = &slept;
    CALL(mysql, mysql_stmt_prepare, &failed, stmt, sql, sizeof sql - 1);
    printf("prepared: %d", failed);
    mysql_stmt_bind_param(stmt, &in);
    CALL(mysql, mysql_stmt_execute, &failed, stmt);
    printf(" executed: %d", failed);
    mysql_stmt_bind_result(stmt, out);
    CALL(mysql, mysql_stmt_store_result, &failed, stmt);
    CALL(mysql, mysql_stmt_fetch, &failed, stmt);
    printf(" fetched: %d %d", failed, got);
    CALL(mysql, mysql_stmt_fetch, &failed, stmt);
    printf(" %d", failed);
    CALL(mysql, mysql_stmt_close, &closed, stmt);
    printf(" closed: %d\n", closed);
    stmt = mysql_stmt_init(mysql);
    CALL(mysql, mysql_stmt_prepare, &failed, stmt, "SELEC", 5);
    printf("wrong: %d %u\n", failed, mysql_stmt_errno(stmt));
    mysql_stmt_close(stmt);
}

int main(void) {
    MYSQL *mysql = opened(0);
    my_bool done = -1;
    int failed = -1, more;
    const char *stat = NULL;
    query(mysql, "SELECT 7");
    waits = 0;
    query(mysql, "SELECT SLEEP(0.1)");
    printf("a slow statement waited: %d\n", waits > 0);
    query(mysql, "SELECT no_such_column");
    query(mysql, "DO 1");
    CALL(mysql, mysql_ping, &failed, mysql);
    printf("ping: %d\n", failed);
    CALL(mysql, mysql_select_db, &failed, mysql, "no_such_database");
    printf("select_db: %d %u\n", failed, mysql_errno(mysql));
    CALL(mysql, mysql_stat, &stat, mysql);
    printf("stat: %d\n", stat && !strncmp(stat, "Uptime", 6));
    CALL(mysql, mysql_autocommit, &done, mysql, 0);
    CALL(mysql, mysql_commit, &done, mysql);
    printf("commit: %d\n", done);
    CALL(mysql, mysql_set_character_set, &failed, mysql, "latin1");
    printf("character set: %d %s\n", failed, mysql_character_set_name(mysql));
    CALL(mysql, mysql_change_user, &done, mysql, env("DB_USER"), env("DB_PASSWORD"), NULL);
    printf("change_user: %d\n", done);
    CALL(mysql, mysql_query, &failed, mysql, "SELECT 1; SELECT 2");
    mysql_free_result(mysql_store_result(mysql));
    CALL(mysql, mysql_next_result, &more, mysql);
    mysql_free_result(mysql_store_result(mysql));
    printf("next_result: %d", more);
    CALL(mysql, mysql_next_result, &more, mysql);
    printf(" %d\n", more);
    row_by_row(mysql);
    large(mysql);
    prepared(mysql);
    /* Blocking calls between. */
    printf("blocking: %d\n", mysql_query(mysql, "DO 2"));
    mysql_close(mysql);
    at_once();

    mysql = opened(1);
    query(mysql, "SELECT SLEEP(20)");
    mysql_close(mysql);

    /* Closed while a call is suspended: the server's end of it ends as well. */
    mysql = opened(0);
    printf("suspended: %d\n", mysql_query_start(&failed, mysql, "SELECT SLEEP(20)") != 0);
    mysql_close(mysql);
    printf("end\n");
    return 0;
}
