// Sequelize: tables made and altered from models, associations, scopes, transactions.
const assert = require("assert");
const { DataTypes, Op, Sequelize, UniqueConstraintError } = require("sequelize");
const e = process.env;
const db = new Sequelize(e.DB_NAME, e.DB_USER, e.DB_PASSWORD, { host: e.DB_HOST, port: +e.DB_PORT, dialect: "mysql", logging: false, dialectOptions: { charset: "utf8mb4" } });

const User = db.define("User", {
  name: { type: DataTypes.STRING(80), unique: "name_once", comment: "who" },
  born: DataTypes.DATE(6),
  kind: { type: DataTypes.ENUM("a", "b"), defaultValue: "a" },
  extra: DataTypes.JSON,
  key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
  data: DataTypes.BLOB("medium"),
}, { paranoid: true, indexes: [{ fields: ["kind", { name: "name", length: 10 }] }] });
const Order = db.define("Order", { total: DataTypes.DECIMAL(12, 4), big: DataTypes.BIGINT.UNSIGNED });
const Tag = db.define("Tag", { word: DataTypes.STRING }, { timestamps: false });
User.hasMany(Order, { onDelete: "CASCADE" });
Order.belongsTo(User);
Order.belongsToMany(Tag, { through: "OrderTags" });
Tag.belongsToMany(Order, { through: "OrderTags" });

async function use() {
  await db.sync({ force: true });
  await db.sync({ alter: true });
  const ann = await User.create(
    { name: "Ann 🐬", born: new Date(1e12), extra: { a: { b: [1], c: 7 } }, data: Buffer.from([0, 1, 255]), Orders: [{ total: "1.2345", big: "18446744073709551615", Tags: [{ word: "x" }] }, { total: 2 }] },
    { include: [{ model: Order, include: [Tag] }] },
  );
  const found = await User.findOne({ where: { "extra.a.c": 7 }, include: { model: Order, include: Tag }, order: [[Order, "id", "ASC"]] });
  assert.deepStrictEqual([found.name, found.extra, found.Orders[0].total, String(found.Orders[0].big)], ["Ann 🐬", { a: { b: [1], c: 7 } }, "1.2345", "18446744073709551615"]);
  assert.strictEqual(found.Orders[0].Tags[0].word, "x");
  assert(found.data.equals(Buffer.from([0, 1, 255])));
  await assert.rejects(User.create({ name: "Ann 🐬" }), UniqueConstraintError);
  await User.upsert({ name: "Ann 🐬", kind: "b" });
  assert.strictEqual(await User.count({ where: { kind: "b", born: { [Op.lt]: new Date() } } }), 1);
  const { count, rows } = await Order.findAndCountAll({ where: { total: { [Op.between]: [1, 3] } }, include: { model: User, required: true }, limit: 1, offset: 1, order: ["id"] });
  assert.deepStrictEqual([count, rows.length], [2, 1]);
  await assert.rejects(db.transaction({ isolationLevel: "SERIALIZABLE" }, async (transaction) => {
    await Order.findAll({ transaction, lock: true, skipLocked: true });
    await Order.destroy({ where: {}, transaction });
    throw new Error("back");
  }), /back/);
  assert.strictEqual(await Order.sum("total"), 3.2345);
  const [one, two] = await Promise.all([db.transaction(), db.transaction()]);
  await Order.increment("total", { by: 5, where: { id: 1 }, transaction: one });
  await one.commit();
  assert.strictEqual((await Order.findByPk(1, { transaction: two })).total, "6.2345");
  await two.rollback();
  await ann.destroy();
  assert.strictEqual(await User.count(), 0);
  await ann.destroy({ force: true });
  assert.strictEqual(await Order.count(), 0);
  const q = db.getQueryInterface();
  await q.addColumn("Tags", "more", { type: DataTypes.INTEGER, defaultValue: 3 });
  await q.changeColumn("Tags", "more", { type: DataTypes.BIGINT, allowNull: false, defaultValue: 4 });
  await q.renameColumn("Tags", "more", "most");
  await q.addIndex("Tags", ["word", "most"], { unique: true, name: "both" });
  assert.strictEqual((await q.describeTable("Tags")).most.type, e.DB_PRODUCT === "mariadb" ? "BIGINT(20)" : "BIGINT");
  assert((await q.showIndex("Tags")).some((i) => i.name === "both" && i.unique));
  await q.removeIndex("Tags", "both");
  await q.removeColumn("Tags", "most");
  await db.drop();
  await db.close();
}

use().catch((error) => {
  console.error(error);
  process.exit(1);
});
