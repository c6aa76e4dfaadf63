// Runs SQL statements in DuckDB for loadgen competitors. Each line of the input is a JSON object with a statement and its
// parameters; each line of the output is its rows with their wall time and CPU time, or an error.
import readline from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';

const instance = await DuckDBInstance.create(':memory:', { threads: process.argv[2] });
const connection = await instance.connect();

async function answer({ sql, parameters }) {
  const values = Object.fromEntries(
    Object.entries(parameters ?? {})
      .filter(([name]) => new RegExp(`\\$${name}\\b`).test(sql)) // DuckDB refuses others
      .map(([name, value]) => [name, typeof value === 'number' ? BigInt(value) : value]),
  );
  const before = process.cpuUsage();
  const started = performance.now();
  const reader = await connection.runAndReadAll(sql, values);
  const wallMs = performance.now() - started;
  const { user, system } = process.cpuUsage(before);
  return { rows: reader.getRowsJson(), wallMs, cpuMs: (user + system) / 1000 };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  let response;
  try {
    response = await answer(JSON.parse(line));
  } catch (error) {
    response = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
