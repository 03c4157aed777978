#!/usr/bin/ruby
# Ruby's mysql2 over the C library: connecting, every type, prepared statements, rows one by one, several results.
require 'mysql2'
require 'bigdecimal'
require 'date'

$checks = 0

def is(got, wanted, what)
  $checks += 1
  raise "#{what}: #{got.inspect} is not #{wanted.inspect}" unless got == wanted
end

options = { username: ENV['DB_USER'], password: ENV['DB_PASSWORD'], database: ENV['DB_NAME'], encoding: 'utf8mb4',
            host: ENV['DB_HOST'], database_timezone: :utc, flags: Mysql2::Client::MULTI_STATEMENTS }
options[:port] = ENV['DB_PORT'].to_i if ENV['DB_PORT']
options[:socket] = ENV['DB_SOCKET'] if ENV['DB_SOCKET']
db = Mysql2::Client.new(options)
db.query('DROP TABLE IF EXISTS ruby_types')
db.query("CREATE TABLE ruby_types (id INT PRIMARY KEY AUTO_INCREMENT, i INT, u BIGINT UNSIGNED, f FLOAT, d DOUBLE,
          n DECIMAL(20,4), b TINYINT(1), y YEAR, dt DATE, ts DATETIME(6), c CHAR(10), v VARCHAR(100), bin VARBINARY(10),
          t TEXT, e ENUM('small','large'), s SET('a','b','c')) CHARACTER SET utf8mb4")
values = [-7, 18_446_744_073_709_551_615, 1.5, 0.1, BigDecimal('-12345678901234.5678'), 1, 2024, Date.new(2024, 2, 29),
          Time.utc(2024, 2, 29, 23, 59, 59, 123_456), 'char', "it's \\ \"quoted\" é", "\x00\x01\xFF".b, 'text' * 10_000,
          'large', 'a,c']
names = %w[i u f d n b y dt ts c v bin t e s]
insert = db.prepare("INSERT INTO ruby_types (#{names.join(', ')}) VALUES (#{(['?'] * names.length).join(', ')})")
insert.execute(*values)
is(insert.last_id, 1, 'the first id')
insert.execute(*([nil] * values.length))
is(insert.affected_rows, 1, 'affected')
select = db.prepare('SELECT * FROM ruby_types WHERE id >= ? ORDER BY id')
rows = [db.query('SELECT * FROM ruby_types ORDER BY id').to_a, select.execute(1).to_a, select.execute(1).to_a]
rows.each_with_index do |result, way|
  is(result.length, 2, 'rows')
  names.zip(values).each do |name, value|
    is(result[0][name], value, "#{name}, way #{way}")
    is(result[1][name], nil, "NULL of #{name}, way #{way}")
  end
end
db.query("INSERT INTO ruby_types (i) VALUES #{(1..500).map { |i| "(#{i})" }.join(',')}")
is(db.affected_rows, 500, 'many rows')
sum = 0
db.query('SELECT i FROM ruby_types WHERE id > 2', stream: true, cache_rows: false).each { |row| sum += row['i'] }
is(sum, 125_250, 'rows one by one')
first = db.query('SELECT 1 AS a; SELECT 2 AS b').first
is(first, { 'a' => 1 }, 'the first of several')
db.next_result
is(db.store_result.first, { 'b' => 2 }, 'the second of several')
db.query('DROP PROCEDURE IF EXISTS ruby_divide')
db.query('CREATE PROCEDURE ruby_divide(a INT, INOUT b INT, OUT rest INT)
          BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; SELECT 9 AS last; END')
db.query('SET @b = 3')
is(db.query('CALL ruby_divide(20, @b, @rest)').first, { 'a' => 20, 'b' => 3 }, 'the first result of CALL')
db.next_result
is(db.store_result.first, { 'last' => 9 }, 'the last result of CALL')
is(db.next_result, true, 'the end of CALL')
is(db.more_results?, false, 'nothing behind it')
is(db.query('SELECT @b AS b, @rest AS rest').first, { 'b' => 6, 'rest' => 2 }, 'OUT parameters')
is(db.escape("it's"), "it\\'s", 'escaped')
begin
  db.query('SELECT * FROM no_such_table')
  raise 'no error'
rescue Mysql2::Error => e
  is(e.error_number, 1146, 'an error number')
  is(e.sql_state, '42S02', 'SQLSTATE')
end
is(db.ping, true, 'ping')
is(db.select_db('information_schema'), 'information_schema', 'another database')
db.close
puts "#{$checks} checks"
