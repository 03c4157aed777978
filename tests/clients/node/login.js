// Logs in by mysql2, a line of WAY USER PASSWORD each.
import { createInterface } from 'node:readline';
import mysql from 'mysql2/promise';

const { DB_HOST, DB_PORT, DB_SOCKET } = process.env;
const ways = { tcp: { host: DB_HOST, port: Number(DB_PORT) }, unix: { socketPath: DB_SOCKET } };
for await (const line of createInterface({ input: process.stdin })) {
  const [way, user, password] = line.split(' ');
  try {
    const db = await mysql.createConnection({ ...ways[way], user, password: password === '-' ? '' : password });
    const [[row]] = await db.query('SELECT 1 AS one');
    console.log(row.one === 1 ? 'in' : 'odd');
    await db.end();
  } catch (error) {
    console.log(error.errno ?? error.message);
  }
}
