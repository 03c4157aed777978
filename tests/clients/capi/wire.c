/* Connects as its lines of options say, and prints what became of it: what the connection is encrypted and compressed
 * with, as both ends tell, or the error's number. DB_CA, DB_OTHER_CA, DB_CERT, DB_KEY, DB_FINGERPRINT name files and a hash. */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *lines[] = {
    "", "enforce", "enforce verify", "set", "ca", "ca verify", "other_ca", "other_ca verify", "ca verify address",
    "cert", "no_file", "tls12", "enforce tls12", "enforce tls11", "cipher tls12", "wrong_cipher", "fingerprint",
    "wrong_fingerprint", "compress", "compress_flag", "enforce compress", "enforce unset",
};

static const char *env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static void set(MYSQL *mysql, const char *word, const char **host, unsigned long *flags) {
    my_bool on = 1, off = 0;
    if (!strcmp(word, "enforce")) mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &on);
    if (!strcmp(word, "unset")) mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &off);
    if (!strcmp(word, "verify")) mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
    if (!strcmp(word, "set")) mysql_ssl_set(mysql, NULL, NULL, NULL, NULL, NULL);
    if (!strcmp(word, "ca")) mysql_ssl_set(mysql, NULL, NULL, env("DB_CA"), NULL, NULL);
    if (!strcmp(word, "other_ca")) mysql_optionsv(mysql, MYSQL_OPT_SSL_CA, env("DB_OTHER_CA"));
    if (!strcmp(word, "no_file")) mysql_optionsv(mysql, MYSQL_OPT_SSL_CA, "/no/such/file");
    if (!strcmp(word, "cert")) {
        mysql_optionsv(mysql, MYSQL_OPT_SSL_CERT, env("DB_CERT"));
        mysql_optionsv(mysql, MYSQL_OPT_SSL_KEY, env("DB_KEY"));
    }
    if (!strcmp(word, "address")) *host = "127.0.0.2";
    if (!strcmp(word, "tls11")) mysql_optionsv(mysql, MYSQL_OPT_TLS_VERSION, "TLSv1.1");
    if (!strcmp(word, "tls12")) mysql_optionsv(mysql, MYSQL_OPT_TLS_VERSION, "TLSv1.2");
    if (!strcmp(word, "cipher")) mysql_optionsv(mysql, MYSQL_OPT_SSL_CIPHER, "ECDHE-ECDSA-AES256-GCM-SHA384");
    if (!strcmp(word, "wrong_cipher")) mysql_optionsv(mysql, MYSQL_OPT_SSL_CIPHER, "FISH");
    if (!strcmp(word, "fingerprint")) mysql_optionsv(mysql, MARIADB_OPT_TLS_PEER_FP, env("DB_FINGERPRINT"));
    if (!strcmp(word, "wrong_fingerprint")) mysql_optionsv(mysql, MARIADB_OPT_TLS_PEER_FP, "00:11");
    if (!strcmp(word, "compress")) mysql_options(mysql, MYSQL_OPT_COMPRESS, NULL);
    if (!strcmp(word, "compress_flag")) *flags |= CLIENT_COMPRESS;
}

static void query(MYSQL *mysql, const char *sql) {
    MYSQL_RES *result;
    MYSQL_ROW row;
    if (mysql_query(mysql, sql) || !(result = mysql_store_result(mysql))) {
        printf(" error %u", mysql_errno(mysql));
        return;
    }
    while ((row = mysql_fetch_row(result))) printf(" %s", row[0]);
    mysql_free_result(result);
}

static void try_line(const char *line) {
    MYSQL *mysql = mysql_init(NULL);
    const char *host = "127.0.0.1", *version = NULL, *cipher, *told = NULL;
    unsigned int number = 0;
    unsigned long flags = 0;
    char words[100], *word;
    strcpy(words, line);
    for (word = strtok(words, " "); word; word = strtok(NULL, " ")) set(mysql, word, &host, &flags);
    printf("%s:", line);
    if (!mysql_real_connect(mysql, host, env("DB_USER"), env("DB_PASSWORD"), NULL, atoi(env("DB_PORT")), NULL, flags)) {
        printf(" error %u %s\n", mysql_errno(mysql), mysql_sqlstate(mysql));
        mysql_close(mysql);
        return;
    }
    cipher = mysql_get_ssl_cipher(mysql);
    mariadb_get_infov(mysql, MARIADB_CONNECTION_SSL_CIPHER, &told);
    mariadb_get_infov(mysql, MARIADB_CONNECTION_TLS_VERSION, &version);
    if (cipher) mariadb_get_infov(mysql, MARIADB_CONNECTION_TLS_VERSION_ID, &number);
    printf(" %s %u compressed %d", version ? version : "bare", number, mysql->net.compress);
    printf(" same cipher %d", !cipher ? !told : told && !strcmp(cipher, told));
    query(mysql, "SELECT CONCAT(VARIABLE_VALUE <> '') FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'");
    query(mysql, "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Compression'");
    query(mysql, "SELECT LENGTH(REPEAT('some text to be compressed', 400000))");
    query(mysql, "SELECT MD5(REPEAT('x', 60)), RIGHT(REPEAT('some text to be compressed', 400000), 5)");
    printf("\n");
    mysql_close(mysql);
}

int main(void) {
    size_t at;
    for (at = 0; at < sizeof lines / sizeof *lines; at++) try_line(lines[at]);
    return 0;
}
