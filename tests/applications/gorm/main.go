// GORM's migrations and its use, golang-migrate's files, and sqlx.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/mysql"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	"github.com/jmoiron/sqlx"
	"gorm.io/datatypes"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type User struct {
	gorm.Model
	Name   string `gorm:"size:80;uniqueIndex;comment:who 🐬"`
	Age    uint8  `gorm:"check:age_small,age < 200;default:7"`
	Born   *time.Time
	Extra  datatypes.JSON
	Orders []Order `gorm:"constraint:OnDelete:CASCADE"`
	Groups []Group `gorm:"many2many:members"`
}

type Order struct {
	ID     uint64
	UserID uint
	Total  float64 `gorm:"type:decimal(12,3);index:by_total,sort:desc"`
	Data   []byte
	At     time.Time `gorm:"precision:6;autoCreateTime"`
}

type Group struct {
	ID   int
	Name string `gorm:"type:varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"`
}

// A later version of the same table.
type Group2 struct {
	ID   int
	Name string `gorm:"type:varchar(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;not null;default:''"`
	Rank int    `gorm:"index"`
}

func (Group2) TableName() string { return "groups" }

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

func same(got, want any) {
	if !reflect.DeepEqual(got, want) {
		log.Output(2, fmt.Sprintf("got %v, want %v", got, want))
		os.Exit(1)
	}
}

func dsn(options string) string {
	e := os.Getenv
	return fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?%s", e("DB_USER"), e("DB_PASSWORD"), e("DB_HOST"), e("DB_PORT"), e("DB_NAME"), options)
}

func main() {
	log.SetFlags(log.Lshortfile)
	useGorm()
	useMigrate()
	useSqlx()
}

func useGorm() {
	db, err := gorm.Open(mysql.Open(dsn("charset=utf8mb4&parseTime=true")), &gorm.Config{Logger: logger.Default.LogMode(logger.Silent), PrepareStmt: true, TranslateError: true})
	check(err)
	check(db.AutoMigrate(&User{}, &Order{}, &Group{}))
	check(db.AutoMigrate(&User{}, &Order{}, &Group{}))
	check(db.AutoMigrate(&Group2{}))
	same(db.Migrator().HasColumn(&Group2{}, "Rank"), true)
	same(db.Migrator().HasIndex(&Order{}, "by_total"), true)
	same(db.Migrator().HasConstraint(&User{}, "age_small"), true)
	types, err := db.Migrator().ColumnTypes(&User{})
	check(err)
	for _, column := range types {
		if column.Name() == "name" {
			length, _ := column.Length()
			comment, _ := column.Comment()
			same([]any{length, comment != ""}, []any{int64(80), true})
		}
	}

	ann := User{Name: "Ann 🐟", Extra: datatypes.JSON(`{"a": {"b": [1, 2]}}`), Groups: []Group{{Name: "g"}, {Name: "G"}}}
	for n := range 500 {
		ann.Orders = append(ann.Orders, Order{Total: float64(n) + 0.125, Data: []byte{0, 255, byte(n)}})
	}
	check(db.Create(&ann).Error)
	same(ann.Age, uint8(7))
	var found User
	check(db.Preload("Orders", func(tx *gorm.DB) *gorm.DB { return tx.Order("total DESC").Limit(3) }).Preload("Groups").Where(datatypes.JSONQuery("extra").Equals(1, "a", "b[0]")).Or("name LIKE ?", "Ann%").First(&found).Error)
	same([]any{len(found.Orders), found.Orders[0].Total, len(found.Groups)}, []any{3, 499.125, 2})
	same(errors.Is(db.Create(&User{Name: "Ann 🐟"}).Error, gorm.ErrDuplicatedKey), true)
	same(errors.Is(db.Create(&Order{UserID: 99}).Error, gorm.ErrForeignKeyViolated), true)
	check(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"age"})}).Create(&User{Name: "Ann 🐟", Age: 44}).Error)
	check(db.First(&found, ann.ID).Error)
	same(found.Age, uint8(44))
	var sums []struct {
		Name string
		Sum  float64
		N    int
	}
	check(db.Model(&Order{}).Joins("JOIN users ON users.id = orders.user_id").Select("users.name, SUM(total) AS sum, COUNT(*) AS n").Group("users.name").Having("n > ?", 10).Find(&sums).Error)
	same([]any{sums[0].Sum, sums[0].N}, []any{124812.5, 500})
	err = db.Transaction(func(tx *gorm.DB) error {
		var locked []Order
		check(tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Find(&locked).Error)
		check(tx.Transaction(func(inner *gorm.DB) error { return inner.Where("total < ?", 10).Delete(&Order{}).Error }))
		_ = tx.Transaction(func(inner *gorm.DB) error {
			inner.Where("1 = 1").Delete(&Order{})
			return errors.New("back")
		})
		var n int64
		tx.Model(&Order{}).Count(&n)
		same(n, int64(490))
		return errors.New("all of it")
	})
	same(err.Error(), "all of it")
	batches := 0
	check(db.FindInBatches(&[]Order{}, 100, func(*gorm.DB, int) error { batches++; return nil }).Error)
	same(batches, 5)
	check(db.Delete(&found).Error)
	same(errors.Is(db.First(&User{}, ann.ID).Error, gorm.ErrRecordNotFound), true)
	check(db.Unscoped().Select("Groups").Delete(&ann).Error)
	var n int64
	check(db.Model(&Order{}).Count(&n).Error)
	same(n, int64(0))
	check(db.Migrator().DropTable("members", &Order{}, &Group{}, &User{}))
}

func useMigrate() {
	folder, err := os.MkdirTemp("", "migrations")
	check(err)
	defer os.RemoveAll(folder)
	for name, text := range map[string]string{
		"1_a.up.sql":   "CREATE TABLE a (id INT PRIMARY KEY);\nCREATE TABLE b (id INT, FOREIGN KEY (id) REFERENCES a (id));",
		"1_a.down.sql": "DROP TABLE b; DROP TABLE a;",
		"2_b.up.sql":   "-- nothing yet\n",
		"2_b.down.sql": "/* nor here */",
		"3_c.up.sql":   "ALTER TABLE a ADD COLUMN c JSON; INSERT INTO a VALUES (1, '{}');",
		"3_c.down.sql": "ALTER TABLE a DROP COLUMN c;",
	} {
		check(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	tool, err := migrate.New("file://"+folder, "mysql://"+dsn("multiStatements=true"))
	check(err)
	up := tool.Up()
	// A file of comments alone is error 1065, and leaves the migration dirty: as on MySQL.
	if up != nil {
		same(tool.Force(2), nil)
		up = tool.Up()
	}
	check(up)
	version, dirty, err := tool.Version()
	check(err)
	same([]any{version, dirty}, []any{uint(3), false})
	check(tool.Steps(-1))
	check(tool.Force(1))
	check(tool.Down())
	_, err = tool.Close()
	check(err)
}

func useSqlx() {
	for _, options := range []string{"parseTime=true", "parseTime=true&interpolateParams=true", "parseTime=true&clientFoundRows=true&multiStatements=true"} {
		db, err := sqlx.Connect("mysql", dsn(options))
		check(err)
		db.MustExec("CREATE TABLE people (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), born DATETIME(6))")
		type person struct {
			ID   int
			Name *string
			Born *time.Time
		}
		born := time.Date(2001, 2, 3, 4, 5, 6, 789000, time.UTC)
		name := "Ann"
		_, err = db.NamedExec("INSERT INTO people (name, born) VALUES (:name, :born)", []person{{Name: &name, Born: &born}, {Name: nil}, {Name: &name}})
		check(err)
		var all []person
		check(db.Select(&all, "SELECT * FROM people ORDER BY id"))
		same([]any{len(all), all[0].Born.Equal(born), all[1].Name}, []any{3, true, (*string)(nil)})
		query, args, err := sqlx.In("SELECT COUNT(*) FROM people WHERE id IN (?) AND name = ?", []int{1, 2, 3}, "Ann")
		check(err)
		var n int
		check(db.Get(&n, db.Rebind(query), args...))
		same(n, 2)
		tx := db.MustBegin()
		tx.MustExec("DELETE FROM people")
		check(tx.Rollback())
		check(db.Get(&n, "SELECT COUNT(*) FROM people"))
		same(n, 3)
		db.MustExec("DROP TABLE people")
		check(db.Close())
	}
}
