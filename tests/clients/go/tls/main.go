// TLS and compression by go-sql-driver/mysql.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const length = 3000000

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func pem(name string) string { return os.Getenv("DB_CERTIFICATES") + "/" + name + ".pem" }

func trusting(authority string) *tls.Config {
	pool := x509.NewCertPool()
	bytes, err := os.ReadFile(pem(authority))
	must(err)
	pool.AppendCertsFromPEM(bytes)
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

func open(user, tlsName string, compress bool) *sql.DB {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = user, "right", "tcp", "localhost:"+os.Getenv("DB_PORT")
	c.TLSConfig, c.MaxAllowedPacket, c.InterpolateParams = tlsName, 0, true
	must(c.Apply(mysql.EnableCompression(compress)))
	connector, err := mysql.NewConnector(c)
	must(err)
	return sql.OpenDB(connector)
}

func refused(user, tlsName string) {
	if open(user, tlsName, false).Ping() == nil {
		panic("nothing refused " + user + " with " + tlsName)
	}
}

func status(db *sql.DB, name string) string {
	var key, value string
	must(db.QueryRow("SHOW STATUS LIKE '" + name + "'").Scan(&key, &value))
	return value
}

func main() {
	certified := trusting("ca")
	certificate, err := tls.LoadX509KeyPair(pem("client-cert"), pem("client-key"))
	must(err)
	certified.Certificates = []tls.Certificate{certificate}
	must(mysql.RegisterTLSConfig("verified", trusting("ca")))
	must(mysql.RegisterTLSConfig("certified", certified))
	must(mysql.RegisterTLSConfig("other", trusting("other")))

	refused("encrypted", "false")
	refused("encrypted", "other")
	for _, tlsName := range []string{"skip-verify", "preferred", "verified", "certified"} {
		for _, compress := range []bool{false, true} {
			db := open("encrypted", tlsName, compress)
			if !strings.HasPrefix(status(db, "Ssl_cipher"), "TLS_AES_") {
				panic("not encrypted: " + tlsName)
			}
			if (status(db, "Compression") == "ON") != compress {
				panic("not as compressed as wanted")
			}
			var text string
			must(db.QueryRow(fmt.Sprintf("SELECT REPEAT('x', %d)", length)).Scan(&text))
			var n int
			must(db.QueryRow("SELECT LENGTH(?)", strings.Repeat("y", length)).Scan(&n))
			if len(text) != length || n != length {
				panic("bytes are missing")
			}
			must(db.Close())
		}
	}
	for _, user := range []string{"certified", "named"} {
		refused(user, "verified")
		must(open(user, "certified", false).Ping())
	}
	fmt.Println("passed")
}
