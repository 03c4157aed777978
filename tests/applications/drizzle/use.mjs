import assert from "assert";
import { count, desc, eq, gt, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/mysql2";
import { bigint, decimal, int, json, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import mysql from "mysql2/promise";

const writers = mysqlTable("writers", { id: int().primaryKey().autoincrement(), name: varchar({ length: 100 }), role: varchar({ length: 10 }) });
const articles = mysqlTable("articles", {
  id: bigint({ mode: "number", unsigned: true }).primaryKey().autoincrement(),
  by: int(), title: varchar({ length: 200 }), price: decimal({ precision: 10, scale: 2 }), extra: json(), twice: int(),
});
const connection = await mysql.createConnection(process.env.DB_URL);
const db = drizzle(connection);
const [{ id }] = await db.insert(writers).values([{ name: "Ann 🐬" }, { name: "Bob" }]).$returningId();
await db.insert(articles).values(Array.from({ length: 50 }, (_, n) => ({ by: id, title: `t${n}`, price: `${n}.25`, extra: { n } })));
await db.insert(articles).values({ by: id, title: "t1" }).onDuplicateKeyUpdate({ set: { price: sql`price + 1000` } });
const rows = await db.select({ name: writers.name, n: count(), top: sql`max(${articles.price})` }).from(articles)
  .innerJoin(writers, eq(writers.id, articles.by)).where(gt(articles.price, "10")).groupBy(writers.name);
assert.deepStrictEqual(rows, [{ name: "Ann 🐬", n: 41, top: "1001.25" }]);
const last = await db.select().from(articles).orderBy(desc(articles.id)).limit(sql.placeholder("n")).prepare().execute({ n: 2 });
assert.deepStrictEqual([last.length, last[0].twice], [2, 6]);
await assert.rejects(db.transaction(async (tx) => { await tx.delete(articles); throw new Error("back"); }, { isolationLevel: "read committed" }), /back/);
await assert.rejects(db.update(articles).set({ price: "-1" }), (e) => (e.cause ?? e).errno === 3819 || (e.cause ?? e).errno === 4025);
await db.delete(writers).where(eq(writers.id, id));
assert.strictEqual((await db.select({ n: count() }).from(articles))[0].n, 0);
await connection.end();
