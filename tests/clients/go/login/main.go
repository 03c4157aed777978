// Logs in by go-sql-driver/mysql, a line of WAY USER PASSWORD each.
package main

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var way, user, password string
		fmt.Sscan(lines.Text(), &way, &user, &password)
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr = user, "tcp", os.Getenv("DB_HOST")+":"+os.Getenv("DB_PORT")
		if password != "-" {
			c.Passwd = password
		}
		if way == "unix" {
			c.Net, c.Addr = "unix", os.Getenv("DB_SOCKET")
		}
		fmt.Println(outcome(c))
	}
}

func outcome(c *mysql.Config) string {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err.Error()
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var one int
	err = db.QueryRow("SELECT 1").Scan(&one)
	var refusal *mysql.MySQLError
	switch {
	case errors.As(err, &refusal):
		return fmt.Sprint(refusal.Number)
	case err != nil:
		return fmt.Sprintf("%q", err)
	}
	return map[bool]string{true: "in", false: "odd"}[one == 1]
}
