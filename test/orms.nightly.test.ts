import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterFile } from 'headgate-testbed/after-file';
import { startPostgres } from 'headgate-testbed/postgres-server';
import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import { ROOT } from './support/package.ts';

const run = promisify(execFile);
/** A package with a lock file of its own: Prisma alone takes 300 MB. */
const FOLDER = join(ROOT, 'test/orms');
const PRISMA = join(FOLDER, 'node_modules/prisma/build/index.js');
/** The programs of the page, by the names in their first lines. */
const programs = [
  ...readFileSync(join(ROOT, 'docs/transactions.md'), 'utf8').matchAll(/^```js\n\/\/ (\S+)\.mjs\n(.*?)^```/gms),
].map(([, name, code]) => [name as string, code as string] as const);

const server = await startPostgres();
afterFile(() => server.stop());
const pool = new pg.Pool({ connectionString: server.url() });
afterFile(() => pool.end());

beforeAll(async () => {
  await run('npm', ['ci', '--ignore-scripts', '--no-workspaces', '--no-audit', '--no-fund'], { cwd: FOLDER });
  mkdirSync(join(FOLDER, '.run'), { recursive: true });
  // Prisma would download an engine that only its migrations need.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  await run(process.execPath, [PRISMA, 'generate', '--schema', 'schema.prisma'], { cwd: FOLDER, env });
  await pool.query('create table payments (id text primary key, amount integer not null)');
}, 600_000);

it('the page has a program of each client', () => {
  expect(programs.map(([name]) => name)).toEqual(['run', 'pg', 'kysely', 'drizzle', 'prisma', 'typeorm', 'outbox']);
});

it.each(programs)('%s executes a key once', async (name, code) => {
  const file = join(FOLDER, `.run/${name}.mjs`);
  writeFileSync(file, code.replaceAll('./.run/', './'));
  const env = { ...process.env, DATABASE_URL: server.url() };
  const { stdout } = await run(process.execPath, [file], { env, cwd: FOLDER });
  expect(stdout).toBe(name === 'outbox' ? '1\n' : 'executed\nreplayed\n');
  const { rows } = await pool.query('select id from payments where id = $1', [`${name}-1`]);
  expect(rows).toHaveLength(1);
});
