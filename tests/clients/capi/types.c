/* Every column type through the C API: what a text query says of it, what a prepared statement delivers into every kind
   of buffer, and what comes back from parameters of every kind. It prints facts; whoever runs it compares them. */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MYSQL *db;

static void must(int failed, const char *what)
{
  if (failed) {
    printf("%s: %u %s %s\n", what, mysql_errno(db), mysql_sqlstate(db), mysql_error(db));
    exit(1);
  }
}

static const char *columns[] = {
  "c_tiny TINYINT", "c_utiny TINYINT UNSIGNED", "c_short SMALLINT", "c_medium MEDIUMINT", "c_int INT",
  "c_uint INT UNSIGNED", "c_zero INT(8) UNSIGNED ZEROFILL", "c_big BIGINT", "c_ubig BIGINT UNSIGNED",
  "c_float FLOAT", "c_double DOUBLE", "c_fixed DOUBLE(10,2)", "c_dec DECIMAL(20,4)", "c_year YEAR", "c_date DATE",
  "c_time TIME", "c_time6 TIME(6)", "c_datetime DATETIME", "c_datetime3 DATETIME(3)", "c_timestamp TIMESTAMP NULL",
  "c_char CHAR(10)", "c_varchar VARCHAR(200)", "c_binary BINARY(4)", "c_varbinary VARBINARY(200)", "c_text TEXT",
  "c_blob BLOB", "c_enum ENUM('small','large')", "c_set SET('a','b','c')", "c_bit BIT(12)",
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *rows[] = {
  "-128,255,-32768,-8388608,-2147483648,4294967295,42,-9223372036854775808,18446744073709551615,-1.5,0.1,3.14159,"
  "-12345678901234.5678,2024,'2024-02-29','-838:59:59','12:34:56.789012','2024-02-29 23:59:59','2024-02-29 23:59:59.123',"
  "'2024-02-29 12:00:00','char','varchar \xc3\xa9',X'00010203',X'FF00FE','a text','blob','large','a,c',b'101010101010'",
  "1,2,3,4,5,6,7,8,9,10.25,11.5,12.25,13.5,1999,'1999-12-31','10:11:12','00:00:00','1999-12-31 00:00:00',"
  "'1999-12-31 00:00:00','1999-12-31 00:00:00','42','42.75 fish','12','3','2024-01-31 10:20:30','20240131','small','',b'1'",
  "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,"
  "NULL,NULL,NULL,NULL,NULL,NULL",
};
enum { ROWS = sizeof rows / sizeof *rows };

static void print_bytes(const char *bytes, unsigned long length)
{
  unsigned long i;
  putchar('\'');
  for (i = 0; i < length; i++) {
    unsigned char c = (unsigned char) bytes[i];
    if (c >= ' ' && c < 127) putchar(c); else printf("\\x%02x", c);
  }
  putchar('\'');
}

static void text_query(void)
{
  MYSQL_RES *result;
  MYSQL_ROW row;
  MYSQL_FIELD *field;
  unsigned i;
  must(mysql_query(db, "SELECT * FROM types ORDER BY id"), "select");
  result = mysql_store_result(db);
  printf("rows %llu fields %u affected %llu\n", mysql_num_rows(result), mysql_num_fields(result), mysql_affected_rows(db));
  while ((field = mysql_fetch_field(result)))
    printf("field %s.%s type %d max_length %lu decimals %u not_null %d unsigned %d zerofill %d num %d\n", field->table,
           field->name, field->type, field->max_length, field->decimals, !!(field->flags & NOT_NULL_FLAG),
           IS_NUM(field->type) && (field->flags & UNSIGNED_FLAG), !!(field->flags & ZEROFILL_FLAG), !!IS_NUM(field->type));
  while ((row = mysql_fetch_row(result))) {
    unsigned long *lengths = mysql_fetch_lengths(result);
    for (i = 0; i < mysql_num_fields(result); i++) {
      if (row[i]) print_bytes(row[i], lengths[i]); else printf("NULL");
      putchar(i + 1 < mysql_num_fields(result) ? ' ' : '\n');
    }
  }
  mysql_data_seek(result, 1);
  row = mysql_fetch_row(result);
  printf("second row again: %s\n", row[0]);
  mysql_free_result(result);
}

static const struct kind { const char *name; enum enum_field_types type; int is_unsigned; } kinds[] = {
  {"tiny", MYSQL_TYPE_TINY, 0}, {"utiny", MYSQL_TYPE_TINY, 1}, {"short", MYSQL_TYPE_SHORT, 0},
  {"ushort", MYSQL_TYPE_SHORT, 1}, {"long", MYSQL_TYPE_LONG, 0}, {"ulong", MYSQL_TYPE_LONG, 1},
  {"longlong", MYSQL_TYPE_LONGLONG, 0}, {"ulonglong", MYSQL_TYPE_LONGLONG, 1}, {"float", MYSQL_TYPE_FLOAT, 0},
  {"double", MYSQL_TYPE_DOUBLE, 0}, {"date", MYSQL_TYPE_DATE, 0}, {"time", MYSQL_TYPE_TIME, 0},
  {"datetime", MYSQL_TYPE_DATETIME, 0}, {"string", MYSQL_TYPE_STRING, 0}, {"blob", MYSQL_TYPE_BLOB, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void print_buffer(const struct kind *kind, const char *buffer, unsigned long length)
{
  const MYSQL_TIME *time = (const MYSQL_TIME *) buffer;
  switch (kind->type) {
  case MYSQL_TYPE_TINY: printf("%d", kind->is_unsigned ? *(unsigned char *) buffer : *(signed char *) buffer); break;
  case MYSQL_TYPE_SHORT: printf("%d", kind->is_unsigned ? *(unsigned short *) buffer : *(short *) buffer); break;
  case MYSQL_TYPE_LONG: printf("%lld", kind->is_unsigned ? (long long) *(unsigned *) buffer : *(int *) buffer); break;
  case MYSQL_TYPE_LONGLONG:
    if (kind->is_unsigned) printf("%llu", *(unsigned long long *) buffer); else printf("%lld", *(long long *) buffer);
    break;
  case MYSQL_TYPE_FLOAT: printf("%.6g", *(float *) buffer); break;
  case MYSQL_TYPE_DOUBLE: printf("%.15g", *(double *) buffer); break;
  case MYSQL_TYPE_DATE: case MYSQL_TYPE_TIME: case MYSQL_TYPE_DATETIME:
    printf("%s%04u-%02u-%02u %02u:%02u:%02u.%06lu", time->neg ? "-" : "", time->year, time->month, time->day, time->hour,
           time->minute, time->second, time->second_part);
    break;
  default: print_bytes(buffer, length > 64 ? 64 : length);
  }
}

/* Some of what the original library does nobody should count on: numbers into dates leave the buffer as it was, blobs and
   bits are copied into numbers as they lie, a date is the number of its year. Porpoise's converts; that isn't looked at. */
static int is_looked_at(const char *column, const struct kind *kind)
{
  int to_time = kind->type == MYSQL_TYPE_DATE || kind->type == MYSQL_TYPE_TIME || kind->type == MYSQL_TYPE_DATETIME;
  int to_string = kind->type == MYSQL_TYPE_STRING || kind->type == MYSQL_TYPE_BLOB;
  int from_time = strstr("c_date c_time c_time6 c_datetime c_datetime3 c_timestamp", column) != NULL;
  int from_bytes = strstr("c_binary c_varbinary c_text c_blob c_bit", column) != NULL;
  if (to_string) return 1;
  if (from_time) return to_time && strncmp(column, "c_time", 6) != 0;
  if (from_bytes || !strcmp(column, "c_enum") || !strcmp(column, "c_set")) return 0;
  if (!strcmp(column, "c_ubig")) return kind->type == MYSQL_TYPE_LONGLONG;
  return !to_time;
}

/* Values that don't fit aren't shown, only that they don't. */
static void prepared(int stored, int with_cursor)
{
  MYSQL_STMT *statement = mysql_stmt_init(db);
  unsigned long cursor = CURSOR_TYPE_READ_ONLY, prefetch = 2;
  my_bool measure = 1;
  char sql[200];
  int c, k, r;
  printf("== prepared, stored %d, cursor %d\n", stored, with_cursor);
  for (c = 0; c < COLUMNS; c++) {
    char name[40];
    sscanf(columns[c], "%39s", name);
    sprintf(sql, "SELECT %s FROM types WHERE id >= ? ORDER BY id", name);
    if (mysql_stmt_prepare(statement, sql, strlen(sql))) {
      printf("%s: %s\n", name, mysql_stmt_error(statement));
      exit(1);
    }
    if (with_cursor) {
      mysql_stmt_attr_set(statement, STMT_ATTR_CURSOR_TYPE, &cursor);
      mysql_stmt_attr_set(statement, STMT_ATTR_PREFETCH_ROWS, &prefetch);
    }
    mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &measure);
    for (k = 0; k < KINDS; k++) {
      if (!is_looked_at(name, &kinds[k])) continue;
      MYSQL_BIND parameter, bind;
      int from = 0, status = 0;
      char buffer[300];
      unsigned long length = 0;
      my_bool is_null = 0, error = 0;
      memset(&parameter, 0, sizeof parameter);
      parameter.buffer_type = MYSQL_TYPE_LONG;
      parameter.buffer = &from;
      if (mysql_stmt_bind_param(statement, &parameter) || mysql_stmt_execute(statement)) {
        printf("%s: %s\n", name, mysql_stmt_error(statement));
        exit(1);
      }
      memset(&bind, 0, sizeof bind);
      bind.buffer_type = kinds[k].type;
      bind.is_unsigned = kinds[k].is_unsigned;
      bind.buffer = buffer;
      bind.buffer_length = sizeof buffer;
      bind.length = &length;
      bind.is_null = &is_null;
      bind.error = &error;
      if (mysql_stmt_bind_result(statement, &bind)) printf("%s: %s\n", name, mysql_stmt_error(statement));
      if (stored) mysql_stmt_store_result(statement);
      printf("%s as %s:", name, kinds[k].name);
      for (r = 0; r < ROWS; r++) {
        memset(buffer, 0, sizeof buffer);
        error = 0;
        status = mysql_stmt_fetch(statement);
        if (is_null) printf(" NULL");
        else if (error) printf(" lost");
        else { putchar(' '); print_buffer(&kinds[k], buffer, length); printf("(%lu)", length); }
        if (status != (error ? MYSQL_DATA_TRUNCATED : 0)) printf("[%d]", status);
      }
      printf(" end %d", mysql_stmt_fetch(statement));
      if (stored) printf(" rows %llu", mysql_stmt_num_rows(statement));
      putchar('\n');
      mysql_stmt_free_result(statement);
    }
  }
  mysql_stmt_close(statement);
}

/* A parameter of every kind, seen as text by the server. */
static void parameters(void)
{
  MYSQL_STMT *statement = mysql_stmt_init(db);
  const char *sql = "SELECT CONCAT(?), LENGTH(?)";
  MYSQL_TIME time = {2024, 2, 29, 23, 59, 58, 120000, 0, MYSQL_TIMESTAMP_DATETIME};
  signed char tiny = -5;
  unsigned char utiny = 250;
  short small = -300;
  int number = -70000;
  unsigned unumber = 4000000000u;
  long long big = -5000000000ll;
  unsigned long long ubig = 18000000000000000000ull;
  float single = 1.5f;
  double twice = 0.1;
  unsigned long length = 5;
  struct { enum enum_field_types type; void *buffer; int is_unsigned; } given[] = {
    {MYSQL_TYPE_TINY, &tiny, 0}, {MYSQL_TYPE_TINY, &utiny, 1}, {MYSQL_TYPE_SHORT, &small, 0},
    {MYSQL_TYPE_LONG, &number, 0}, {MYSQL_TYPE_LONG, &unumber, 1}, {MYSQL_TYPE_LONGLONG, &big, 0},
    {MYSQL_TYPE_LONGLONG, &ubig, 1}, {MYSQL_TYPE_FLOAT, &single, 0}, {MYSQL_TYPE_DOUBLE, &twice, 0},
    {MYSQL_TYPE_DATE, &time, 0}, {MYSQL_TYPE_STRING, "fishes", 0},
    {MYSQL_TYPE_BLOB, "fi\0sh", 0}, {MYSQL_TYPE_NEWDECIMAL, "12.50", 0}, {MYSQL_TYPE_NULL, NULL, 0},
  };
  unsigned i;
  puts("== parameters");
  mysql_stmt_prepare(statement, sql, strlen(sql));
  printf("parameters %lu columns %u\n", mysql_stmt_param_count(statement), mysql_stmt_field_count(statement));
  printf("unbound: %d", mysql_stmt_execute(statement));
  printf(" %u\n", mysql_stmt_errno(statement));
  for (i = 0; i < sizeof given / sizeof *given; i++) {
    MYSQL_BIND bind[2], out[2];
    char text[100];
    int bytes = -1;
    unsigned long text_length = 0;
    my_bool is_null = 0;
    memset(bind, 0, sizeof bind);
    bind[0].buffer_type = given[i].type;
    bind[0].buffer = given[i].buffer;
    bind[0].is_unsigned = given[i].is_unsigned;
    bind[0].buffer_length = 5;
    bind[0].length = &length;
    bind[1] = bind[0];
    memset(out, 0, sizeof out);
    out[0].buffer_type = MYSQL_TYPE_STRING;
    out[0].buffer = text;
    out[0].buffer_length = sizeof text;
    out[0].length = &text_length;
    out[0].is_null = &is_null;
    out[1].buffer_type = MYSQL_TYPE_LONG;
    out[1].buffer = &bytes;
    mysql_stmt_bind_param(statement, bind);
    if (mysql_stmt_execute(statement)) { printf("%s\n", mysql_stmt_error(statement)); continue; }
    mysql_stmt_bind_result(statement, out);
    mysql_stmt_fetch(statement);
    printf("type %d: ", given[i].type);
    if (is_null) printf("NULL"); else print_bytes(text, text_length);
    printf(" %d\n", bytes);
    mysql_stmt_free_result(statement);
  }
  mysql_stmt_close(statement);
}

/* Long values in pieces, columns in pieces, truncation, seeking. */
static void pieces(void)
{
  MYSQL_STMT *statement = mysql_stmt_init(db);
  MYSQL_BIND bind;
  MYSQL_RES *metadata;
  MYSQL_ROW_OFFSET place;
  char small[5], piece[4];
  unsigned long length;
  my_bool error = 0, is_null = 0, measure = 1;
  int number;
  const char *sql = "INSERT INTO pieces VALUES (1, ?)";
  puts("== pieces");
  must(mysql_query(db, "CREATE TEMPORARY TABLE pieces (id INT, t TEXT)"), "create");
  mysql_stmt_prepare(statement, sql, strlen(sql));
  memset(&bind, 0, sizeof bind);
  bind.buffer_type = MYSQL_TYPE_STRING;
  bind.length = &length;
  bind.is_null = &is_null;
  mysql_stmt_bind_param(statement, &bind);
  mysql_stmt_send_long_data(statement, 0, "one ", 4);
  mysql_stmt_send_long_data(statement, 0, "two ", 4);
  mysql_stmt_send_long_data(statement, 0, "three", 5);
  printf("execute %d", mysql_stmt_execute(statement));
  printf(" affected %llu\n", mysql_stmt_affected_rows(statement));
  printf("no such parameter: %d", mysql_stmt_send_long_data(statement, 9, "x", 1));
  printf(" %u\n", mysql_stmt_errno(statement));
  sql = "SELECT t FROM pieces";
  mysql_stmt_prepare(statement, sql, strlen(sql));
  mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &measure);
  mysql_stmt_execute(statement);
  memset(&bind, 0, sizeof bind);
  bind.buffer_type = MYSQL_TYPE_STRING;
  bind.buffer = small;
  bind.buffer_length = sizeof small;
  bind.length = &length;
  bind.error = &error;
  mysql_stmt_bind_result(statement, &bind);
  mysql_stmt_store_result(statement);
  metadata = mysql_stmt_result_metadata(statement);
  printf("max_length %lu\n", mysql_fetch_field(metadata)->max_length);
  mysql_free_result(metadata);
  number = mysql_stmt_fetch(statement);
  printf("fetch %d error %d length %lu %.5s\n", number, error, length, small);
  bind.buffer = piece;
  bind.buffer_length = sizeof piece;
  printf("column %d at 4: %d %.4s\n", 0, mysql_stmt_fetch_column(statement, &bind, 0, 4), piece);
  printf("no such column: %d", mysql_stmt_fetch_column(statement, &bind, 7, 0));
  printf(" %u\n", mysql_stmt_errno(statement));
  mysql_stmt_free_result(statement);

  must(mysql_query(db, "INSERT INTO pieces VALUES (2,'b'),(3,'c'),(4,'d')"), "insert");
  sql = "SELECT id FROM pieces ORDER BY id";
  mysql_stmt_prepare(statement, sql, strlen(sql));
  mysql_stmt_execute(statement);
  memset(&bind, 0, sizeof bind);
  bind.buffer_type = MYSQL_TYPE_LONG;
  bind.buffer = &number;
  mysql_stmt_bind_result(statement, &bind);
  mysql_stmt_store_result(statement);
  mysql_stmt_data_seek(statement, 2);
  mysql_stmt_fetch(statement);
  printf("third %d", number);
  mysql_stmt_data_seek(statement, 1);
  place = mysql_stmt_row_tell(statement);
  mysql_stmt_data_seek(statement, 0);
  mysql_stmt_fetch(statement);
  printf(" first %d", number);
  mysql_stmt_row_seek(statement, place);
  mysql_stmt_fetch(statement);
  printf(" second %d\n", number);
  mysql_stmt_close(statement);
}

/* Several results, rows one by one, calls out of turn. */
static void results(void)
{
  MYSQL_RES *result;
  MYSQL_ROW row;
  MYSQL_ROW_OFFSET place;
  int status;
  puts("== results");
  must(mysql_set_server_option(db, MYSQL_OPTION_MULTI_STATEMENTS_ON), "multi");
  must(mysql_query(db, "SELECT 1; DO 2; SELECT 3 UNION SELECT 4; SELECT nonsense; SELECT 5"), "several");
  do {
    result = mysql_store_result(db);
    if (result) {
      while ((row = mysql_fetch_row(result))) printf("row %s\n", row[0]);
      mysql_free_result(result);
    } else printf("fields %u affected %lld\n", mysql_field_count(db), (long long) mysql_affected_rows(db));
  } while (!(status = mysql_next_result(db)));
  printf("then %d %u more %d\n", status, mysql_errno(db), mysql_more_results(db));
  must(mysql_query(db, "SELECT id FROM types ORDER BY id"), "use");
  result = mysql_use_result(db);
  row = mysql_fetch_row(result);
  printf("used %s", row[0]);
  printf(" busy %d", mysql_query(db, "SELECT 1") != 0);
  printf(" %u\n", mysql_errno(db));
  mysql_free_result(result);
  must(mysql_query(db, "SELECT id FROM types ORDER BY id"), "tell");
  result = mysql_store_result(db);
  mysql_fetch_row(result);
  place = mysql_row_tell(result);
  row = mysql_fetch_row(result);
  printf("second %s", row[0]);
  mysql_row_seek(result, place);
  row = mysql_fetch_row(result);
  printf(" again %s eof %d\n", row[0], mysql_eof(result));
  mysql_free_result(result);
  printf("refused %d", mysql_query(db, "SELECT * FROM no_such_table") != 0);
  printf(" %u %s\n", mysql_errno(db), mysql_sqlstate(db));
  must(mysql_query(db, "CREATE TEMPORARY TABLE many (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"), "create");
  must(mysql_query(db, "INSERT INTO many (v) VALUES (1),(2),(3)"), "insert");
  printf("inserted %llu first id %llu info %s\n", mysql_affected_rows(db), mysql_insert_id(db), mysql_info(db));
  must(mysql_query(db, "UPDATE many SET v = 2"), "update");
  printf("updated %llu info %s\n", mysql_affected_rows(db), mysql_info(db));
  printf("autocommit %d in transaction %d\n", !!(db->server_status & SERVER_STATUS_AUTOCOMMIT),
         !!(db->server_status & SERVER_STATUS_IN_TRANS));
  mysql_autocommit(db, 0);
  must(mysql_query(db, "INSERT INTO many (v) VALUES (4)"), "insert");
  printf("autocommit %d\n", !!(db->server_status & SERVER_STATUS_AUTOCOMMIT));
  mysql_rollback(db);
  mysql_autocommit(db, 1);
  must(mysql_select_db(db, "information_schema"), "select_db");
  printf("no such database %d", mysql_select_db(db, "no_such_database") != 0);
  printf(" %u\n", mysql_errno(db));
  must(mysql_ping(db), "ping");
  must(mysql_reset_connection(db), "reset");
}

static int init_text(void **to, const char *name, void *data) { *to = data; printf("asked for %s\n", name); return 0; }
static int read_text(void *from, char *to, unsigned int room)
{
  const char **text = from;
  unsigned length = strlen(*text);
  if (length > 3) length = 3;
  (void) room;
  memcpy(to, *text, length);
  *text += length;
  return length;
}
/* A prepared CALL: the results of its statements, a row of its OUT parameters, and the end. */
static void calls(void)
{
  MYSQL_STMT *statement = mysql_stmt_init(db);
  const char *sql = "CALL call_divide(?, ?, ?)";
  MYSQL_BIND bind[3], result[2];
  int given[] = {20, 3, 0}, i, next;
  char buffers[2][40];
  unsigned long lengths[2];
  must(mysql_query(db, "DROP PROCEDURE IF EXISTS call_divide"), "drop procedure");
  must(mysql_query(db, "CREATE PROCEDURE call_divide(IN a INT, INOUT b INT, OUT rest VARCHAR(20)) "
                       "BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; END"), "create procedure");
  must(mysql_stmt_prepare(statement, sql, strlen(sql)), "prepare call");
  printf("call parameters %lu fields %u\n", mysql_stmt_param_count(statement), mysql_stmt_field_count(statement));
  memset(bind, 0, sizeof bind);
  for (i = 0; i < 3; i++) { bind[i].buffer_type = MYSQL_TYPE_LONG; bind[i].buffer = &given[i]; }
  must(mysql_stmt_bind_param(statement, bind), "bind call");
  must(mysql_stmt_execute(statement), "execute call");
  do {
    unsigned fields = mysql_stmt_field_count(statement);
    printf("call result fields %u out %d\n", fields, (db->server_status & SERVER_PS_OUT_PARAMS) != 0);
    if (!fields) continue;
    memset(result, 0, sizeof result);
    for (i = 0; i < 2; i++) {
      result[i].buffer_type = MYSQL_TYPE_STRING;
      result[i].buffer = buffers[i];
      result[i].buffer_length = sizeof buffers[i];
      result[i].length = &lengths[i];
    }
    must(mysql_stmt_bind_result(statement, result), "bind results of call");
    must(mysql_stmt_store_result(statement), "store results of call");
    while (mysql_stmt_fetch(statement) == 0) {
      for (i = 0; i < (int) fields; i++) { print_bytes(buffers[i], lengths[i]); putchar(' '); }
      putchar('\n');
    }
    mysql_stmt_free_result(statement);
  } while ((next = mysql_stmt_next_result(statement)) == 0);
  printf("call end %d affected %llu\n", next, (unsigned long long) mysql_stmt_affected_rows(statement));
  must(mysql_stmt_close(statement), "close call");
}

static void end_text(void *from) { (void) from; }
static int error_text(void *from, char *to, unsigned int room) { (void) from; snprintf(to, room, "no text"); return 7; }
static int refuse(void **to, const char *name, void *data) { (void) to; (void) name; (void) data; return 1; }

static void files(const char *schema)
{
  const char *text = "1,one\n2,two\n";
  MYSQL_RES *result;
  MYSQL_ROW row;
  char sql[300];
  puts("== files");
  must(mysql_query(db, "SET GLOBAL local_infile = 1"), "allow");
  must(mysql_select_db(db, schema), "select_db");
  must(mysql_query(db, "CREATE TEMPORARY TABLE loaded (id INT, name VARCHAR(20))"), "create");
  mysql_set_local_infile_handler(db, init_text, read_text, end_text, error_text, &text);
  sprintf(sql, "LOAD DATA LOCAL INFILE 'any name' INTO TABLE loaded FIELDS TERMINATED BY ','");
  must(mysql_query(db, sql), "load");
  printf("loaded %llu\n", mysql_affected_rows(db));
  must(mysql_query(db, "SELECT * FROM loaded ORDER BY id"), "select");
  result = mysql_store_result(db);
  while ((row = mysql_fetch_row(result))) printf("%s %s\n", row[0], row[1]);
  mysql_free_result(result);
  mysql_set_local_infile_handler(db, refuse, read_text, end_text, error_text, NULL);
  printf("refused %d", mysql_query(db, sql) != 0);
  printf(" %u %s\n", mysql_errno(db), mysql_error(db));
  mysql_set_local_infile_default(db);
  must(mysql_query(db, "SELECT 1"), "after");
  mysql_free_result(mysql_store_result(db));
}

static void connect_as(const char *charset)
{
  unsigned protocol = getenv("DB_PROTOCOL") ? atoi(getenv("DB_PROTOCOL")) : MYSQL_PROTOCOL_DEFAULT, on = 1;
  db = mysql_init(NULL);
  mysql_options(db, MYSQL_OPT_PROTOCOL, &protocol);
  mysql_options(db, MYSQL_OPT_LOCAL_INFILE, &on);
  mysql_options(db, MYSQL_SET_CHARSET_NAME, charset);
  must(!mysql_real_connect(db, getenv("DB_HOST"), getenv("DB_USER"), getenv("DB_PASSWORD"), NULL,
                           getenv("DB_PORT") ? atoi(getenv("DB_PORT")) : 0, getenv("DB_SOCKET"), 0), "connect");
}

/* What the server takes texts for, and sends them in, is what was asked for before the connection. */
static void charset_from_the_start(const char *charset)
{
  MYSQL_RES *result;
  MYSQL_ROW row;
  connect_as(charset);
  must(mysql_query(db, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results,"
                       " HEX(CONVERT('\xe9' USING utf8mb4)), _utf8mb4 X'C3A9'"), "select");
  result = mysql_store_result(db);
  row = mysql_fetch_row(result);
  printf("from the start %s: %s %s %s %s ", mysql_character_set_name(db), row[0], row[1], row[2], row[3]);
  print_bytes(row[4], mysql_fetch_lengths(result)[4]);
  puts("");
  mysql_free_result(result);
  mysql_close(db);
}

int main(int count, char **arguments)
{
  const char *schema = getenv("DB_NAME");
  char sql[4000] = "CREATE TABLE types (id INT NOT NULL PRIMARY KEY", escaped[100];
  int i;
  if (mysql_library_init(count, arguments, NULL)) return 1;
  connect_as("utf8mb4");
  sprintf(sql, "CREATE DATABASE IF NOT EXISTS %s", schema);
  must(mysql_query(db, sql), "database");
  must(mysql_select_db(db, schema), "select_db");
  must(mysql_query(db, "SET time_zone = '+00:00', SESSION sql_mode = ''"), "set");
  must(mysql_query(db, "DROP TABLE IF EXISTS types"), "drop");
  strcpy(sql, "CREATE TABLE types (id INT NOT NULL PRIMARY KEY");
  for (i = 0; i < COLUMNS; i++) sprintf(sql + strlen(sql), ", %s", columns[i]);
  strcat(sql, ") CHARACTER SET utf8mb4");
  must(mysql_query(db, sql), "create");
  for (i = 0; i < ROWS; i++) {
    sprintf(sql, "INSERT INTO types VALUES (%d, %s)", i, rows[i]);
    must(mysql_query(db, sql), "insert");
  }
  text_query();
  prepared(0, 0);
  prepared(1, 0);
  prepared(0, 1);
  prepared(1, 1);
  parameters();
  pieces();
  calls();
  results();
  files(schema);
  mysql_real_escape_string(db, escaped, "a'b\\c\"\n\r\0\x1a\xc3\xa9", 12);
  printf("escaped %s charset %s\n", escaped, mysql_character_set_name(db));
  printf("set %d", mysql_set_character_set(db, "latin1"));
  printf(" %s\n", mysql_character_set_name(db));
  mysql_close(db);
  charset_from_the_start("latin1");
  mysql_library_end();
  puts("end");
  return 0;
}
