// TLS and compression by mysql2.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import mysql from 'mysql2/promise';

const { DB_PORT, DB_CERTIFICATES } = process.env;
const pem = (name) => readFileSync(`${DB_CERTIFICATES}/${name}.pem`);
const base = { host: 'localhost', port: Number(DB_PORT), user: 'encrypted', password: 'right' };
const verified = { ca: pem('ca'), verifyIdentity: true };
const certified = { ...verified, cert: pem('client-cert'), key: pem('client-key') };
const length = 3000000;
const status = async (db, name) => (await db.query(`SHOW STATUS LIKE '${name}'`))[0][0].Value;

await assert.rejects(mysql.createConnection(base));
for (const more of [
  { ssl: { rejectUnauthorized: false } }, { ssl: verified }, { ssl: certified }, { ssl: verified, compress: true },
]) {
  const db = await mysql.createConnection({ ...base, ...more });
  assert.match(await status(db, 'Ssl_cipher'), /^TLS_AES_/);
  assert.equal(await status(db, 'Compression'), more.compress ? 'ON' : 'OFF');
  const [[row]] = await db.query(`SELECT REPEAT('x', ${length}) AS x`);
  assert.equal(row.x.length, length);
  const [[sent]] = await db.query('SELECT LENGTH(?) AS n', ['y'.repeat(length)]);
  assert.equal(sent.n, length);
  await db.end();
}
await assert.rejects(mysql.createConnection({ ...base, ssl: { ...verified, ca: pem('other') } }));
for (const user of ['certified', 'named']) {
  await assert.rejects(mysql.createConnection({ ...base, user, ssl: verified }), { errno: 1045 });
  await (await mysql.createConnection({ ...base, user, ssl: certified })).end();
}
console.log('passed');
