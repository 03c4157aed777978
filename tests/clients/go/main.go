// go-sql-driver/mysql against a server, through database/sql. Exits non-zero at the first thing that is not as it should be.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func settings(user string, unix bool) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = user, os.Getenv("DB_PASSWORD"), os.Getenv("DB_NAME")
	c.Net, c.Addr = "tcp", os.Getenv("DB_HOST")+":"+os.Getenv("DB_PORT")
	if unix {
		c.Net, c.Addr = "unix", os.Getenv("DB_SOCKET")
	}
	c.ParseTime = true
	c.MaxAllowedPacket = 0
	return c
}

func open(c *mysql.Config) *sql.DB {
	connector, err := mysql.NewConnector(c)
	must(err)
	return sql.OpenDB(connector)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func logins() {
	for _, unix := range []bool{false, true} {
		for _, user := range strings.Fields(os.Getenv("DB_USERS")) {
			db := open(settings(user, unix))
			var who string
			must(db.QueryRow("SELECT CURRENT_USER()").Scan(&who))
			check(who == user+"@%", "logged in as %s", who)
			must(db.Close())
			wrong := settings(user, unix)
			wrong.Passwd = "wrong"
			db = open(wrong)
			check(number(db.Ping()) == 1045, "a wrong password was taken")
			must(db.Close())
		}
	}
}

// every type, as text (interpolated) and as a prepared statement
func types(interpolate bool) {
	c := settings(os.Getenv("DB_USER"), false)
	c.InterpolateParams = interpolate
	db := open(c)
	defer db.Close()
	_, err := db.Exec("DROP TABLE IF EXISTS go_types")
	must(err)
	_, err = db.Exec(`CREATE TABLE go_types (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, si SMALLINT, mi MEDIUMINT, i INT,
		bi BIGINT, ub BIGINT UNSIGNED, de DECIMAL(20,5), f FLOAT, d DOUBLE, da DATE, tm TIME(3), dt DATETIME(6), ts TIMESTAMP NULL,
		y YEAR, b BIT(10), v VARCHAR(50), vb VARBINARY(50), tx TEXT, bl BLOB, e ENUM('x','y'), s SET('p','q'), j JSON)`)
	must(err)
	when := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	second := when.Truncate(time.Second)
	result, err := db.Exec(`INSERT INTO go_types (ti,si,mi,i,bi,ub,de,f,d,da,tm,dt,ts,y,b,v,vb,tx,bl,e,s,j) VALUES
		(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, -128, 32767, -8388608, 2147483647, int64(-1<<63), uint64(1<<64-1), "12345.67891",
		float32(1.5), 0.1, day, "-10:11:12.345", when, second, 2024, []byte{2, 255}, "日本 'q' \\ \x00", []byte{0, 1, 255}, strings.Repeat("t", 5000),
		bytes.Repeat([]byte{0, 39, 92}, 100), "y", "p,q", `{"a": 1}`)
	must(err)
	last, _ := result.LastInsertId()
	affected, _ := result.RowsAffected()
	check(last == 1 && affected == 1, "insert id %d, affected %d", last, affected)
	var (
		ti, si, mi, i, bi int64
		ub                uint64
		de, tm, v, tx     string
		e, s, j           string
		f                 float32
		d                 float64
		da, dt, ts        time.Time
		y                 int
		b, vb, bl         []byte
	)
	row := db.QueryRow("SELECT ti,si,mi,i,bi,ub,de,f,d,da,tm,dt,ts,y,b,v,vb,tx,bl,e,s,j FROM go_types WHERE id = ? AND bi < ?", 1, 0)
	must(row.Scan(&ti, &si, &mi, &i, &bi, &ub, &de, &f, &d, &da, &tm, &dt, &ts, &y, &b, &v, &vb, &tx, &bl, &e, &s, &j))
	check(ti == -128 && si == 32767 && mi == -8388608 && i == 2147483647 && bi == -1<<63 && ub == 1<<64-1, "integers: %d %d %d %d %d %d", ti, si, mi, i, bi, ub)
	check(de == "12345.67891" && f == 1.5 && d == 0.1, "numbers: %s %v %v", de, f, d)
	check(da.Equal(day) && dt.Equal(when) && ts.Equal(second) && tm == "-10:11:12.345" && y == 2024, "times: %v %v %v %v %v", da, dt, ts, tm, y)
	check(bytes.Equal(b, []byte{2, 255}) && v == "日本 'q' \\ \x00" && bytes.Equal(vb, []byte{0, 1, 255}), "bytes: %v %q %v", b, v, vb)
	check(len(tx) == 5000 && bytes.Equal(bl, bytes.Repeat([]byte{0, 39, 92}, 100)) && e == "y" && s == "p,q" && strings.Contains(j, `"a"`), "texts")
	_, err = db.Exec("INSERT INTO go_types (ti, v, dt) VALUES (?, ?, ?)", nil, nil, nil)
	must(err)
	var n sql.NullInt64
	var ns sql.NullString
	var nt sql.NullTime
	must(db.QueryRow("SELECT ti, v, dt FROM go_types WHERE id = ?", 2).Scan(&n, &ns, &nt))
	check(!n.Valid && !ns.Valid && !nt.Valid, "NULLs came back as values")
	rows, err := db.Query("SELECT id, ub, de, dt, v, bl FROM go_types WHERE id > ?", 0)
	must(err)
	columns, err := rows.ColumnTypes()
	must(err)
	names := []string{}
	for _, column := range columns {
		names = append(names, column.DatabaseTypeName())
	}
	check(strings.Join(names, " ") == "INT UNSIGNED BIGINT DECIMAL DATETIME VARCHAR BLOB", "column types: %v", names)
	must(rows.Close())
}

func prepared() {
	db := open(settings(os.Getenv("DB_USER"), true))
	defer db.Close()
	_, err := db.Exec("DROP TABLE IF EXISTS go_t")
	must(err)
	_, err = db.Exec("CREATE TABLE go_t (id INT PRIMARY KEY, v VARCHAR(20))")
	must(err)
	insert, err := db.Prepare("INSERT INTO go_t VALUES (?, ?)")
	must(err)
	for id := range 100 {
		_, err = insert.Exec(id, fmt.Sprint("v", id))
		must(err)
	}
	must(insert.Close())
	choose, err := db.Prepare("SELECT v FROM go_t WHERE id >= ? ORDER BY id LIMIT ?")
	must(err)
	for id := range 50 {
		rows, err := choose.Query(id, 2)
		must(err)
		count := 0
		for rows.Next() {
			var v string
			must(rows.Scan(&v))
			check(v == fmt.Sprint("v", id+count), "row %d was %s", id+count, v)
			count++
		}
		check(count == 2, "%d rows", count)
	}
	must(choose.Close())
	_, err = db.Prepare("SELEC ?")
	check(number(err) == 1064, "preparing nonsense gave %v", err)
	_, err = db.Exec("INSERT INTO go_t VALUES (?, ?)", 1, "again")
	check(number(err) == 1062, "a double key gave %v", err)
	// a parameter's type may change from one run to the next
	same, err := db.Prepare("SELECT ?")
	must(err)
	for _, value := range []any{int64(5), "text", 1.5, nil, []byte("bytes")} {
		var back any
		must(same.QueryRow(value).Scan(&back))
		check(value == nil && back == nil || value != nil && strings.Contains(fmt.Sprintf("%v %s", back, back), strings.Trim(fmt.Sprintf("%v", value), "[]")) || value != nil && fmt.Sprintf("%s", back) == fmt.Sprintf("%s", value), "sent %v, came %v", value, back)
	}
}

func transactions() {
	db := open(settings(os.Getenv("DB_USER"), false))
	defer db.Close()
	count := func() (n int) {
		must(db.QueryRow("SELECT COUNT(*) FROM go_t").Scan(&n))
		return
	}
	before := count()
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	must(err)
	_, err = tx.Exec("INSERT INTO go_t VALUES (1000, 'x')")
	must(err)
	check(count() == before, "an uncommitted row is seen")
	must(tx.Rollback())
	check(count() == before, "a row rolled back is there")
	tx, err = db.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO go_t VALUES (?, ?)", 1000, "x")
	must(err)
	must(tx.Commit())
	check(count() == before+1, "a committed row is missing")
	tx, err = db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	must(err)
	_, err = tx.Exec("DELETE FROM go_t")
	check(number(err) == 1792, "a read-only transaction wrote: %v", err)
	must(tx.Rollback())
}

func manyStatementsAndLargePackets() {
	c := settings(os.Getenv("DB_USER"), false)
	c.MultiStatements = true
	db := open(c)
	defer db.Close()
	rows, err := db.Query("SELECT 1; SELECT 2, 3")
	must(err)
	check(rows.Next(), "no first row")
	check(rows.NextResultSet() && rows.Next(), "no second result")
	var two, three int
	must(rows.Scan(&two, &three))
	check(two == 2 && three == 3, "%d %d", two, three)
	must(rows.Close())
	for _, size := range []int{1<<24 - 2, 1 << 24, 20_000_000} {
		var length int
		must(db.QueryRow("SELECT LENGTH(?)", strings.Repeat("x", size)).Scan(&length))
		check(length == size, "%d bytes arrived as %d", size, length)
		var back string
		must(db.QueryRow(fmt.Sprintf("SELECT REPEAT('y', %d)", size)).Scan(&back))
		check(len(back) == size, "%d bytes came back as %d", size, len(back))
	}
}

func procedures() {
	db := open(settings(os.Getenv("DB_USER"), false))
	defer db.Close()
	c, err := db.Conn(context.Background())
	must(err)
	defer c.Close()
	ctx := context.Background()
	for _, sql := range []string{"DROP PROCEDURE IF EXISTS go_divide", `CREATE PROCEDURE go_divide(IN a INT, INOUT b INT, OUT rest INT)
		BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; SELECT 'end'; END`, "SET @b = 3"} {
		_, err = c.ExecContext(ctx, sql)
		must(err)
	}
	rows, err := c.QueryContext(ctx, "CALL go_divide(?, @b, @rest)", 20)
	must(err)
	var a, b, rest int
	var word string
	check(rows.Next(), "no first row")
	must(rows.Scan(&a, &b))
	check(rows.NextResultSet() && rows.Next(), "no second result")
	must(rows.Scan(&word))
	check(a == 20 && b == 3 && word == "end", "%d %d %s", a, b, word)
	must(rows.Close())
	must(c.QueryRowContext(ctx, "SELECT @b, @rest").Scan(&b, &rest))
	check(b == 6 && rest == 2, "%d %d", b, rest)
	// The driver has no place for an OUT parameter: what comes of it is one more result.
	rows, err = c.QueryContext(ctx, "CALL go_divide(?, ?, @rest)", 17, 5)
	must(err)
	for rows.NextResultSet() {
	}
	must(rows.Close())
	must(c.QueryRowContext(ctx, "SELECT @rest").Scan(&rest))
	check(rest == 2, "%d", rest)
}

func pools() {
	db := open(settings(os.Getenv("DB_USER"), true))
	defer db.Close()
	db.SetMaxOpenConns(8)
	done := make(chan error)
	for worker := range 16 {
		go func() {
			for n := range 50 {
				var back int
				if err := db.QueryRow("SELECT ? + ?", worker, n).Scan(&back); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 16 {
		must(<-done)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(ctx, "SELECT SLEEP(5)")
	check(errors.Is(err, context.DeadlineExceeded), "a cancelled statement gave %v", err)
	must(db.Ping())
}

func main() {
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"each user logs in over each way", logins},
		{"every type, interpolated", func() { types(true) }},
		{"every type, prepared", func() { types(false) }},
		{"prepared statements", prepared},
		{"transactions", transactions},
		{"many statements in one, packets larger than 16 MiB", manyStatementsAndLargePackets},
		{"procedures", procedures},
		{"a pool of connections", pools},
	} {
		fmt.Println(step.name)
		step.run()
	}
	fmt.Println("all ok")
}
