// mysql2 against a server. Exits non-zero at the first thing that is not as it should be.
import assert from 'node:assert/strict';
import mysql from 'mysql2/promise';

const { DB_HOST, DB_PORT, DB_SOCKET, DB_USER, DB_USERS, DB_PASSWORD, DB_NAME } = process.env;
const tcp = { host: DB_HOST, port: Number(DB_PORT) };
const unix = { socketPath: DB_SOCKET };
const options = (more) => ({
  user: DB_USER, password: DB_PASSWORD, database: DB_NAME, timezone: 'Z', supportBigNumbers: true, ...more,
});
const number = async (promise) => promise.then(() => 0, (error) => error.errno);

const steps = {
  async 'each user logs in over each way'() {
    for (const way of [tcp, unix]) {
      for (const user of DB_USERS.split(' ')) {
        const db = await mysql.createConnection(options({ ...way, user }));
        const [[row]] = await db.query('SELECT CURRENT_USER() AS who');
        assert.equal(row.who, `${user}@%`);
        await db.end();
        assert.equal(await number(mysql.createConnection(options({ ...way, user, password: 'wrong' }))), 1045);
      }
    }
  },

  async 'every type, as text and as binary'() {
    const db = await mysql.createConnection(options(tcp));
    await db.query('DROP TABLE IF EXISTS node_types');
    await db.query(`CREATE TABLE node_types (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, i INT, bi BIGINT, ub BIGINT UNSIGNED,
      de DECIMAL(20,5), f FLOAT, d DOUBLE, da DATE, tm TIME, dt DATETIME(3), y YEAR, b BIT(10), v VARCHAR(50), vb VARBINARY(50),
      tx TEXT, bl BLOB, e ENUM('x','y'), s SET('p','q'))`);
    const sent = {
      ti: -128, i: 2147483647, bi: '-9223372036854775808', ub: '18446744073709551615', de: '12345.67891', f: 1.5, d: 0.1,
      da: '2024-02-29', tm: '-10:11:12', dt: '2024-02-29 23:59:59.123', y: 2024, b: Buffer.from([2, 255]), v: "日本 'q' \\ \0 😀",
      vb: Buffer.from([0, 1, 255]), tx: 't'.repeat(5000), bl: Buffer.alloc(3000, '\0\'\\'), e: 'y', s: 'p,q',
    };
    const columns = Object.keys(sent).join(',');
    const marks = Object.keys(sent).map(() => '?').join(',');
    const plain = { dateStrings: true, bigNumberStrings: true };
    for (const method of ['query', 'execute']) {
      const [result] = await db[method](`INSERT INTO node_types (${columns}) VALUES (${marks})`, Object.values(sent));
      assert.equal(result.affectedRows, 1);
      for (const read of ['query', 'execute']) {
        const reader = await mysql.createConnection(options({ ...tcp, ...plain }));
        const [rows, fields] = await reader[read](`SELECT ${columns} FROM node_types WHERE id = ?`, [result.insertId]);
        assert.deepEqual({ ...rows[0] }, sent, `${method}, then ${read}`);
        assert.deepEqual(fields.map((f) => f.name), Object.keys(sent));
        await reader.end();
      }
    }
    const [[dates]] = await db.execute('SELECT da, dt FROM node_types WHERE id = 1');
    assert.equal(dates.dt.toISOString(), '2024-02-29T23:59:59.123Z');
    const [[nulls]] = await db.execute('SELECT ? AS a, ? AS b', [null, 'x']);
    assert.deepEqual({ ...nulls }, { a: null, b: 'x' });
    await db.end();
  },

  async 'prepared statements, many times'() {
    const db = await mysql.createConnection(options(unix));
    await db.query('DROP TABLE IF EXISTS node_t');
    await db.query('CREATE TABLE node_t (id INT PRIMARY KEY, v VARCHAR(20))');
    for (let id = 0; id < 200; id++) await db.execute('INSERT INTO node_t VALUES (?, ?)', [id, `v${id}`]);
    const statement = await db.prepare('SELECT v FROM node_t WHERE id BETWEEN ? AND ? ORDER BY id');
    for (let id = 0; id < 100; id++) {
      const [rows] = await statement.execute([id, id + 1]);
      assert.deepEqual(rows.map((r) => r.v), [`v${id}`, `v${id + 1}`]);
    }
    await statement.close();
    assert.equal(await number(db.execute('SELECT * FROM nothing WHERE id = ?', [1])), 1146);
    assert.equal(await number(db.execute('INSERT INTO node_t VALUES (?, ?)', [1, 'x'])), 1062);
    assert.equal(await number(db.query('SELEC')), 1064);
    await db.end();
  },

  async 'transactions'() {
    const db = await mysql.createConnection(options(tcp));
    const other = await mysql.createConnection(options(unix));
    const count = async (c) => (await c.query('SELECT COUNT(*) AS n FROM node_t'))[0][0].n;
    const before = await count(db);
    await db.beginTransaction();
    await db.query('DELETE FROM node_t');
    assert.equal(await count(db), 0);
    assert.equal(await count(other), before);
    await db.rollback();
    assert.equal(await count(db), before);
    await db.beginTransaction();
    await db.query('INSERT INTO node_t VALUES (?)', [[1000, 'x']]);
    await db.commit();
    assert.equal(await count(other), before + 1);
    await db.end();
    await other.end();
  },

  async 'many statements in one, large packets'() {
    const db = await mysql.createConnection(options({ ...tcp, multipleStatements: true }));
    const [results] = await db.query('SELECT 1 AS a; SET @x = 2; SELECT @x AS b');
    assert.equal(results[0][0].a, 1);
    assert.equal(results[2][0].b, 2);
    for (const size of [2 ** 24 - 2, 2 ** 24, 20_000_000]) {
      const [[row]] = await db.query('SELECT LENGTH(?) AS n', ['x'.repeat(size)]);
      assert.equal(row.n, size);
      const [[back]] = await db.query(`SELECT REPEAT('y', ${size}) AS v`);
      assert.equal(back.v.length, size);
    }
    await db.end();
  },

  async 'procedures and their OUT parameters'() {
    const flags = ['PS_MULTI_RESULTS'];
    const db = await mysql.createConnection(options({ ...tcp, flags }));
    await db.query('DROP PROCEDURE IF EXISTS node_divide');
    await db.query(`CREATE PROCEDURE node_divide(IN a INT, INOUT b INT, OUT rest INT)
      BEGIN SELECT a AS a, b AS b; SET rest = a % b; SET b = a DIV b; SELECT 'end' AS word; END`);
    const [texts] = await db.query('SET @b = 3; CALL node_divide(20, @b, @rest); SELECT @b, @rest').catch((error) => [error.errno]);
    assert.equal(texts, 1064);
    const [sets] = await db.execute('CALL node_divide(?, ?, ?)', [20, 3, null]);
    assert.deepEqual(sets.slice(0, 3).map(([row]) => ({ ...row })), [{ a: 20, b: 3 }, { word: 'end' }, { b: 6, rest: 2 }]);
    const [others] = await db.execute('CALL node_divide(?, ?, @rest)', [17, 5]);
    assert.deepEqual({ ...others[2][0] }, { b: 3 });
    const [[row]] = await db.query('SELECT @rest AS rest');
    assert.equal(Number(row.rest), 2);
    assert.equal(await number(db.execute('CALL node_divide(?, 5, ?)', [17, null])), 1414);
    await db.end();
  },

  async 'reset, change of user, a pool'() {
    const db = await mysql.createConnection(options(tcp));
    await db.query('SET @mine = 1');
    await db.changeUser({ user: DB_USER, password: DB_PASSWORD, database: DB_NAME });
    const [[row]] = await db.query('SELECT @mine AS mine');
    assert.equal(row.mine, null);
    await db.ping();
    await db.end();
    const pool = mysql.createPool(options({ ...unix, connectionLimit: 5 }));
    const answers = await Promise.all([...Array(100).keys()].map((n) => pool.query('SELECT ? + 1 AS n', [n])));
    answers.forEach(([rows], n) => assert.equal(Number(rows[0].n), n + 1));
    await pool.end();
  },
};

for (const [name, run] of Object.entries(steps)) {
  console.log(name);
  await run();
}
console.log('all ok');
