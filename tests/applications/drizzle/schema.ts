import { bigint, check, datetime, decimal, index, int, json, mysqlEnum, mysqlTable, text, timestamp, uniqueIndex, varchar } from "drizzle-orm/mysql-core";
import { sql } from "drizzle-orm";

export const writers = mysqlTable("writers", {
  id: int().primaryKey().autoincrement(),
  name: varchar({ length: 100 }).notNull().unique(),
  role: mysqlEnum(["reader", "writer"]).default("reader"),
  made: timestamp({ fsp: 3 }).defaultNow(),
});

export const articles = mysqlTable(
  "articles",
  {
    id: bigint({ mode: "number", unsigned: true }).primaryKey().autoincrement(),
    by: int().references(() => writers.id, { onDelete: "cascade" }),
    title: varchar({ length: 200 }).notNull(),
    body: text(),
    price: decimal({ precision: 10, scale: 2 }),
    extra: json(),
    at: datetime({ fsp: 6 }),
    twice: int().generatedAlwaysAs(sql`(length(\`title\`) * 2)`, { mode: "stored" }),
  },
  (t) => [uniqueIndex("once").on(t.by, t.title), index("priced").on(t.price), check("positive", sql`${t.price} >= 0`)],
);
