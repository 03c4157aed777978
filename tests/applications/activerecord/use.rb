# ActiveRecord: migrations and what it dumps of them, models, transactions, locks.
require "active_record"
require "stringio"

ActiveRecord::Base.establish_connection(
  adapter: "mysql2", host: ENV["DB_HOST"], port: ENV["DB_PORT"].to_i, username: ENV["DB_USER"], password: ENV["DB_PASSWORD"],
  database: ENV["DB_NAME"], encoding: "utf8mb4", prepared_statements: ENV["PREPARED"] == "1"
)
ActiveRecord::Migration.verbose = false
$base = ActiveRecord::Base.connection

def check(holds, seen = nil)
  raise "not so at #{caller(1, 1).first}: #{seen.inspect}" unless holds
end

class Tables < ActiveRecord::Migration[6.1]
  def change
    create_table :people, comment: "who 🐬" do |t|
      t.string :name, null: false, limit: 80
      t.json :extra
      t.date :born
      t.integer :books_count, default: 0, unsigned: true
      t.virtual :upper, type: :string, as: "upper(`name`)", stored: true
      t.timestamps precision: 6
      t.index :name, unique: true
      t.check_constraint "books_count < 1000", name: "few"
    end
    create_table :books do |t|
      t.references :person, foreign_key: { on_delete: :cascade }
      t.string :title, collation: "utf8mb4_bin"
      t.decimal :price, precision: 10, scale: 3
      t.binary :cover
      t.boolean :sold, default: false
      t.index [:title, :price], order: { price: :desc }, length: { title: 20 }
    end
  end
end

class Change < ActiveRecord::Migration[6.1]
  def change
    add_column :books, :pages, :bigint, after: :title
    rename_column :books, :sold, :gone
    reversible do |dir|
      dir.up { change_column :people, :name, :string, limit: 120, null: false }
      dir.down { change_column :people, :name, :string, limit: 80, null: false }
    end
    add_index :books, :pages, name: "by_pages"
  end
end

class Person < ActiveRecord::Base
  has_many :books
  validates :name, uniqueness: true, on: :create, if: -> { name == "checked" }
end

class Book < ActiveRecord::Base
  belongs_to :person, counter_cache: true
end

def dump
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump($base, out)
  out.string
end

Tables.migrate(:up)
Change.migrate(:up)
first = dump
check first.include?('t.decimal "price", precision: 10, scale: 3'), first
check first.include?('t.check_constraint "`books_count` < 1000", name: "few"'), first
check first.include?("add_foreign_key \"books\", \"people\", on_delete: :cascade"), first
$base.drop_table :books
$base.drop_table :people
eval(first)
check dump == first, dump

ann = Person.create!(name: "Ann 🐟", extra: { "a" => [1, { "b" => nil }] }, born: Date.new(2001, 2, 3))
100.times { |n| ann.books.create!(title: "book #{n}", price: n + 0.125, cover: "\x00\xFF".b, pages: 2**40 + n) }
ann.reload
check ann.extra == { "a" => [1, { "b" => nil }] } && ann.born == Date.new(2001, 2, 3) && ann.books_count == 100, ann
check ann.created_at.usec.positive? && ann.upper == "ANN 🐟", ann.upper
check ann.books.order(price: :desc).offset(1).limit(2).pluck(:title) == ["book 98", "book 97"]
check Book.joins(:person).where(people: { name: "Ann 🐟" }).group("people.name").having("COUNT(*) > 5").sum(:price) == { "Ann 🐟" => BigDecimal("4962.5") }
check Book.first.cover == "\x00\xFF".b && Book.last.pages == 2**40 + 99
check Person.includes(:books).where("books.pages > ?", 2**40 + 97).references(:books).first.books.size == 2
begin
  Person.create!(name: "Ann 🐟")
  raise "a second Ann"
rescue ActiveRecord::RecordNotUnique
  check !Person.new(name: "checked").invalid?(:update)
end
begin
  Book.insert({ person_id: 77 })
  Book.insert!({ person_id: 77 })
  raise "of nobody"
rescue ActiveRecord::InvalidForeignKey
  check Book.count == 100
end
begin
  Book.create!(person: ann, title: "x" * 300)
  raise "too long"
rescue ActiveRecord::ValueTooLong
  check Book.count == 100
end
Person.upsert_all([{ name: "Ann 🐟", born: "1999-01-01" }, { name: "Bob", born: nil }].map { |row| row.merge(created_at: Time.now, updated_at: Time.now) })
check Person.count == 2 && ann.reload.born == Date.new(1999, 1, 1)
Person.transaction do
  Book.lock("FOR UPDATE SKIP LOCKED").load
  Person.transaction(requires_new: true) do
    Book.delete_all
    raise ActiveRecord::Rollback
  end
  check Book.count == 100
  Book.where("price < 10").delete_all
  raise ActiveRecord::Rollback
end
check Book.count == 100
check Book.in_batches(of: 30).map(&:count) == [30, 30, 30, 10]
check Book.where(id: Book.select(:id).where(gone: false)).exists?
check Person.connection.select_value("SELECT GET_LOCK('a', 1)") == 1 && $base.release_advisory_lock("a")
check Book.where(title: "book 1").explain.include?("index_books_on_title_and_price")
ann.destroy
check Book.count == 0
Change.migrate(:down)
Tables.migrate(:down)
check (Person.connection.tables - %w[schema_migrations ar_internal_metadata]).empty?, Person.connection.tables
