// Knex: migrations of its kind, its query builder, streams and transactions; Objection's models over it.
const assert = require("assert");
const { Model } = require("objection");
const e = process.env;
const connection = { host: e.DB_HOST, port: +e.DB_PORT, user: e.DB_USER, password: e.DB_PASSWORD, database: e.DB_NAME };
const knex = require("knex")({ client: "mysql2", connection, pool: { min: 0, max: 4 } });

const migrations = {
  "1_tables": {
    up: (knex) =>
      knex.schema
        .createTable("users", (t) => {
          t.increments();
          t.string("name", 80).notNullable().unique().comment("🐬");
          t.json("extra");
          t.enu("state", ["new", "old"]).defaultTo("new");
          t.timestamps(true, true);
        })
        .createTable("notes", (t) => {
          t.bigIncrements();
          t.integer("user_id").unsigned().references("users.id").onDelete("CASCADE");
          t.text("text", "longtext");
          t.decimal("price", 10, 3).checkPositive("price_positive");
          t.uuid("key");
          t.binary("data");
          t.datetime("at", { precision: 6 }).defaultTo(knex.fn.now(6));
          t.index(["user_id", "price"]);
        }),
    down: (knex) => knex.schema.dropTable("notes").dropTable("users"),
  },
  "2_change": {
    up: (knex) =>
      knex.schema.alterTable("users", (t) => {
        t.string("mail").nullable().after("name");
        t.string("name", 120).notNullable().alter();
        t.renameColumn("extra", "more");
        t.index(["mail", "name"], "by_mail");
      }),
    down: (knex) =>
      knex.schema.alterTable("users", (t) => {
        t.dropIndex([], "by_mail");
        t.dropColumn("mail");
        t.renameColumn("more", "extra");
      }),
  },
};
const source = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
};

class User extends Model {
  static tableName = "users";
  static jsonAttributes = ["more"];
  static relationMappings = () => ({
    notes: { relation: Model.HasManyRelation, modelClass: Note, join: { from: "users.id", to: "notes.user_id" } },
  });
}
class Note extends Model {
  static tableName = "notes";
}

async function use() {
  const config = { migrationSource: source };
  assert.deepStrictEqual((await knex.migrate.latest(config))[1], ["1_tables", "2_change"]);
  assert((await knex.schema.hasColumn("users", "more")) && !(await knex.schema.hasTable("nothing")));
  assert.strictEqual((await knex("users").columnInfo()).name.maxLength, 120);
  const [id] = await knex("users").insert({ name: "Ann 🐟", more: JSON.stringify({ a: [1, 2] }) });
  const rows = Array.from({ length: 1000 }, (_, n) => ({ user_id: id, text: "x".repeat(n), price: n + 0.125, data: Buffer.from([0, 255, n & 255]) }));
  await knex.batchInsert("notes", rows, 100);
  const sum = await knex("notes").sum({ total: "price" }).count({ n: "*" }).first();
  assert.deepStrictEqual({ ...sum }, { total: "499625.000", n: 1000 });
  let streamed = 0;
  for await (const row of knex("notes").select("id", "data").orderBy("id").stream()) assert.strictEqual(row.data[2], streamed++ & 255);
  assert.strictEqual(streamed, 1000);
  await knex("users").insert({ name: "Ann 🐟", mail: "a@b" }).onConflict("name").merge(["mail"]);
  await knex("users").insert({ name: "Ann 🐟" }).onConflict("name").ignore();
  assert.strictEqual((await knex("users").first()).mail, "a@b");
  await assert.rejects(knex("users").insert({ name: "Ann 🐟" }), { errno: 1062, code: "ER_DUP_ENTRY", sqlState: "23000" });
  await assert.rejects(knex("notes").insert({ user_id: 77, price: 1 }), { errno: 1452 });
  await assert.rejects(
    knex.transaction(async (trx) => {
      await trx("notes").delete();
      assert.strictEqual((await trx("notes").count({ n: "*" }).forUpdate())[0].n, 0);
      throw new Error("back");
    }),
    { message: "back" },
  );
  const ranked = knex("notes").select("id", "price").rank("place", (w) => w.orderBy("price", "desc"));
  assert.strictEqual((await knex.with("ranked", ranked).from("ranked").where("place", 1))[0].price, "999.125");
  assert.strictEqual((await knex("users").whereJsonPath("more", "$.a[1]", "=", 2)).length, 1);
  const page = await knex("notes").where("price", ">", knex.raw("?", [10])).whereIn("user_id", knex("users").select("id")).limit(5).offset(5).orderBy("id");
  assert.strictEqual(page[0].id, 16);

  Model.knex(knex);
  await User.query().insertGraph({ name: "Bob", more: { b: 1 }, notes: [{ text: "one", price: 1 }, { text: "two", price: 2 }] });
  const bob = await User.query().findOne({ name: "Bob" }).withGraphFetched("notes");
  assert.deepStrictEqual([bob.more, bob.notes.length, bob.state], [{ b: 1 }, 2, "new"]);
  assert.strictEqual(await User.query().deleteById(bob.id), 1);
  assert.strictEqual((await Note.query().where("user_id", bob.id)).length, 0);

  assert.strictEqual((await knex.migrate.rollback(config, true))[1].length, 2);
  assert(!(await knex.schema.hasTable("users")));
}

use().then(
  () => knex.destroy(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
