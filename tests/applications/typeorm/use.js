// TypeORM: a schema that is made from entities, and found to be so; relations, trees, transactions.
require("reflect-metadata");
const assert = require("assert");
const { DataSource, EntitySchema, In, Like, MoreThan } = require("typeorm");
const e = process.env;

const Person = new EntitySchema({
  name: "Person",
  columns: {
    id: { type: Number, primary: true, generated: true },
    name: { type: String, length: 60, unique: true, comment: "who" },
    born: { type: "datetime", precision: 6, nullable: true },
    role: { type: "enum", enum: ["reader", "writer"], default: "reader" },
    tags: { type: "simple-array", nullable: true },
    extra: { type: "json", nullable: true },
    made: { type: "datetime", createDate: true },
    changed: { type: "datetime", updateDate: true },
    gone: { type: "datetime", deleteDate: true },
    version: { type: Number, version: true },
  },
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "by", cascade: true } },
});
const Book = new EntitySchema({
  name: "Book",
  columns: {
    id: { type: String, primary: true, generated: "uuid" },
    title: { type: "varchar", length: 200 },
    price: { type: "decimal", precision: 9, scale: 2, default: 0 },
    pages: { type: "smallint", unsigned: true, nullable: true },
    lower: { type: "varchar", length: 200, asExpression: "lower(`title`)", generatedType: "STORED" },
  },
  indices: [{ name: "by_title", columns: ["title", "price"] }],
  relations: {
    by: { type: "many-to-one", target: "Person", inverseSide: "books", onDelete: "CASCADE" },
    about: { type: "many-to-many", target: "Topic", joinTable: true, cascade: true },
  },
});
const Topic = new EntitySchema({
  name: "Topic",
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String } },
  relations: {
    parent: { type: "many-to-one", target: "Topic", inverseSide: "children" },
    children: { type: "one-to-many", target: "Topic", inverseSide: "parent", cascade: true },
  },
});

const source = () =>
  new DataSource({
    type: "mysql", host: e.DB_HOST, port: +e.DB_PORT, username: e.DB_USER, password: e.DB_PASSWORD, database: e.DB_NAME,
    charset: "utf8mb4", entities: [Person, Book, Topic],
  });

async function use() {
  const db = await source().initialize();
  await db.synchronize();
  const again = await db.driver.createSchemaBuilder().log();
  assert.deepStrictEqual(again.upQueries.map((q) => q.query), []);

  const people = db.getRepository("Person");
  const ann = await people.save({
    name: "Ann 🐬", born: new Date("2001-02-03T04:05:06.789Z"), tags: ["a", "b"], extra: { deep: [1, { x: null }] },
    books: [{ title: "One", price: 12.5, about: [{ name: "fish" }] }, { title: "Two", pages: 65535 }],
  });
  const found = await people.findOne({ where: { name: Like("Ann%") }, relations: { books: { about: true } }, order: { books: { title: "ASC" } } });
  assert.deepStrictEqual(found.extra, { deep: [1, { x: null }] });
  assert.deepStrictEqual(found.tags, ["a", "b"]);
  assert.strictEqual(found.born.getTime(), ann.born.getTime());
  assert.deepStrictEqual(found.books.map((b) => [b.title, b.price, b.pages, b.lower]), [["One", "12.50", null, "one"], ["Two", "0.00", 65535, "two"]]);
  assert.strictEqual(found.books[0].about[0].name, "fish");

  found.role = "writer";
  assert.strictEqual((await people.save(found)).version, 2);
  await assert.rejects(people.save({ name: "Ann 🐬" }), { errno: 1062 });
  await people.upsert([{ name: "Ann 🐬", role: "reader" }, { name: "Bob" }], ["name"]);
  assert.strictEqual(await people.countBy({ role: "reader" }), 2);

  const [page, total] = await people.findAndCount({ relations: { books: true }, take: 1, skip: 0, order: { name: "ASC" } });
  assert.deepStrictEqual([page.length, total, page[0].books.length], [1, 2, 2]);
  const sums = await db.getRepository("Book").createQueryBuilder("b").innerJoin("b.by", "p").select("p.name", "name").addSelect("SUM(b.price)", "sum")
    .groupBy("p.name").having("SUM(b.price) > :least", { least: 1 }).getRawMany();
  assert.deepStrictEqual(sums, [{ name: "Ann 🐬", sum: "12.50" }]);
  assert.strictEqual(await db.getRepository("Book").countBy({ title: In(["One", "None"]), price: MoreThan(1) }), 1);

  const topics = db.getRepository("Topic");
  await topics.save({ name: "root", children: [{ name: "left", children: [{ name: "leaf" }] }, { name: "right" }] });
  const root = await topics.findOne({ where: { name: "root" }, relations: { children: { children: true } }, order: { children: { name: "ASC" } } });
  assert.deepStrictEqual(root.children.map((c) => [c.name, c.children.length]), [["left", 1], ["right", 0]]);
  const below = await db.query("WITH RECURSIVE t AS (SELECT id FROM topic WHERE id = ? UNION ALL SELECT c.id FROM topic c JOIN t ON c.parentId = t.id) SELECT COUNT(*) AS n FROM t", [root.id]);
  assert.strictEqual(+below[0].n, 4);

  await assert.rejects(
    db.transaction("SERIALIZABLE", async (m) => {
      await m.createQueryBuilder("Person", "p").setLock("pessimistic_write").getMany();
      await m.delete("Book", { title: "One" });
      throw new Error("back");
    }),
    /back/,
  );
  assert.strictEqual(await db.getRepository("Book").count(), 2);
  await people.softDelete({ name: "Ann 🐬" });
  assert.strictEqual(await people.count(), 1);
  assert.strictEqual(await people.count({ withDeleted: true }), 2);
  await people.delete({ name: "Ann 🐬" });
  assert.strictEqual(await db.getRepository("Book").count(), 0);

  let streamed = 0;
  await topics.save(Array.from({ length: 500 }, (_, n) => ({ name: `t${n}` })), { chunk: 100 });
  for await (const _ of await topics.createQueryBuilder("t").stream()) streamed++;
  assert.strictEqual(streamed, 505);
  await db.dropDatabase();
  await db.destroy();
}

use().catch((error) => {
  console.error(error);
  process.exit(1);
});
