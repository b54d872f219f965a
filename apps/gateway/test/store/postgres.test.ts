/** The store in PostgreSQL: its set-up, what gateways share, an outage, and what the doctor says. */
import { postgresForFile } from 'headgate-testbed/postgres-for-file';
import { eventually } from 'headgate-testbed/raw-http';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { migrateStore } from '../../src/cli/migrate.ts';
import { checkConfig } from '../../src/config/config.ts';
import { examineStore } from '../../src/store/doctor.ts';
import { findingsTable } from '../../src/store/finding.ts';
import { openStore } from '../../src/store/store.ts';
import { startAdminGateway } from '../support/admin.ts';
import { configOf, expectProblem, ratesOf, writeConfig } from '../support/gateway.ts';
import { openLog, startInProcess } from '../support/in-process.ts';
import { callsOf, expectOriginal, expectReplay, freshKey, keyedConfig, post } from '../support/keyed.ts';

const server = await postgresForFile();
const upstream = await startUpstream();
const CHATS = '/api/v1/chats?account_id=';

async function sql(text: string, database?: string): Promise<void> {
  const client = new Client(server.url(database));
  await client.connect();
  await client.query(text);
  await client.end();
}
const storeIn = (schema: string, rest: object = {}) => ({ postgres: { url: server.url(), schema, ...rest } });
const configIn = (schema: string, rest: object = {}) => checkConfig({ store: storeIn(schema, rest) }, 'test');

/** Runs `headgate migrate`. */
async function migrate(schema: string, isPrinted = false): Promise<string> {
  let output = '';
  const write = (text: string) => {
    output += text;
  };
  expect(await migrateStore(configIn(schema), isPrinted, { out: write, error: write })).toBe(0);
  return output;
}

describe('the set-up', () => {
  it('a schema that is missing is an error at the start that says what to do; migrate creates it, also twice', async () => {
    const opening = () => openStore(configIn('made'), openLog().log);
    await expect(opening()).rejects.toThrow(/schema "made" is missing.*run headgate migrate --config FILE/);
    expect(await migrate('made')).toBe('the schemas made and made_shadow are up to date\n');
    await migrate('made');
    const store = await opening();
    expect([store.kind, await store.health()]).toEqual(['postgres', 'ok']);
    store.close();
  });

  it('headgate serve and headgate doctor end with 1 if the schema is missing, and say it', async () => {
    const file = writeConfig({ listen: { port: 0 }, store: storeIn('missing') });
    for (const command of ['serve', 'doctor']) {
      let output = '';
      const write = (text: string) => {
        output += text;
      };
      const code = await runCli([command, '--config', file], { out: write, error: write });
      expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('headgate migrate --config FILE') });
    }
  });

  it('the printed SQL creates the same', async () => {
    await sql(await migrate('printed', true));
    (await openStore(configIn('printed'), openLog().log)).close();
  });

  it('a user without rights is an error that names the tables; with the rights of the docs it works', async () => {
    await migrate('rights');
    await sql(`create role gate login password 's3cret'; grant usage on schema rights, rights_shadow to gate;
      grant select on all tables in schema rights, rights_shadow to gate`);
    const url = server.url().replace('postgres@', 'gate@');
    const opening = () => openStore(configIn('rights', { url, password: 's3cret' }), openLog().log);
    await expect(opening()).rejects.toThrow(/the user gate may not use rights\.\w+, .*: grant select, insert/);
    await sql('grant select, insert, update, delete on all tables in schema rights, rights_shadow to gate');
    const store = await opening();
    expect(await store.health()).toBe('ok');
    store.close();
  });
});

it('two gateways share limits, adjustments, blocks and details; a candidate counts beside them', async () => {
  const config = {
    store: storeIn('shared', { migrate: true }),
    storeDeadlineMs: 10_000,
    adjustments: { refreshMs: 50 },
    limits: { default: { allMethods: ['3/1h'] } },
  };
  const [one, other] = await Promise.all([
    startAdminGateway(upstream.url, config),
    startAdminGateway(upstream.url, config),
  ]);
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await (i % 2 ? one : other).ask('GET', `${CHATS}acc_1`)).status);
  expect(statuses).toEqual([200, 200, 200, 429]);

  await one.admin('PUT', '/v1/limit?account=acc_2&wait=applied', { json: { windows: ['7/1h'] } });
  expect(ratesOf(await other.ask('GET', `${CHATS}acc_2`))).toMatchObject({ limit: 7, remaining: 6 });
  await one.admin('PUT', '/v1/block?account=acc_2', { json: { forMs: 60_000, reason: 'Unpaid.' } });
  expectProblem(await other.ask('GET', `${CHATS}acc_2`), 429, 'api/too_many_requests');

  await one.admin('PUT', '/v1/shadow', { json: { limits: { default: { allMethods: ['1/1h'] } } } });
  const read = async (path: string, from = other) => JSON.parse((await from.admin('GET', path)).text);
  await eventually(async () => (await read('/v1/shadow')).candidate !== null, 'the candidate');
  // A candidate decides after the answer, so the second request waits for the first one's check.
  await one.ask('GET', `${CHATS}acc_3`);
  await eventually(async () => (await read('/v1/shadow', one)).figures.total.none === 1, 'the first decision');
  await other.ask('GET', `${CHATS}acc_3`);
  await eventually(async () => (await read('/v1/shadow')).figures.total.onlyCandidate === 1, 'the decision');
  await eventually(async () => {
    const { instances } = await read('/v1/instances');
    return instances.length === 2 && instances.every(({ breaker }: { breaker: unknown }) => breaker === 'closed');
  }, 'the details of both');
  expect(await read('/v1/status')).toMatchObject({ store: { kind: 'postgres', health: 'ok', breaker: 'closed' } });
  const text = await one.metrics();
  for (const name of ['store_calls_total', 'claims_calls_total', 'pool_connections'])
    expect(text).toMatch(new RegExp(`^headgate_postgres_${name} \\d`, 'm'));
  await Promise.all([one.stop(), other.stop()]);
});

it('I4: what one gateway stored, another replays, also an answer of a megabyte', async () => {
  const config = keyedConfig(upstream.url, { store: storeIn('keyed', { migrate: true }), storeDeadlineMs: 10_000 });
  const [one, other] = await Promise.all([startInProcess(config), startInProcess(config)]);
  for (const body of ['sent', 'x'.repeat(1_000_000)]) {
    upstream.behave(answer({ status: 201, body }));
    const key = freshKey();
    const original = await post(one, key);
    expectOriginal(original, 201);
    expectReplay(await post(other, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  }
  upstream.reset();
  await Promise.all([one.stop(), other.stop()]);
});

describe('doctor', () => {
  const examine = async (store: unknown, rest: object = {}) =>
    findingsTable(await examineStore(checkConfig({ store, ...rest }, 'test')));

  it('finds no fault in a good server', async () => {
    await migrate('good');
    const table = await examine(storeIn('good'));
    expect(table).not.toMatch(/^(fault|warning)/m);
    for (const subject of ['reachable', 'version', 'role', 'encoding', 'isolation', 'connections', 'clock', 'schema'])
      expect(table).toMatch(new RegExp(`^ok +${subject} `, 'm'));
  });

  it('names each fault and its remedy, and no password', async () => {
    await sql(`create database strange template template0 encoding 'SQL_ASCII' locale 'C'`);
    await sql(`alter database strange set default_transaction_isolation = 'serializable';
      alter database strange set default_transaction_read_only = on; alter database strange set synchronous_commit = off`);
    const url = server.url('strange').replace('postgres@', 'postgres:s3cret@');
    const routes = [{ route: 'POST /a', account: 'key', idempotent: true }];
    const rest = { routes, limits: { unlimited: true }, workers: 100 };
    const table = await examine({ postgres: { url, maxConnections: 50 } }, rest);
    for (const line of [
      /^fault +role +read-only: connect to the primary/m,
      /^fault +encoding +SQL_ASCII: create a database with UTF8/m,
      /^fault +isolation +serializable: alter role/m,
      /^warning +durability +synchronous_commit or fsync is off: .*a retry is executed again/m,
      /^warning +connections +this gateway opens up to 5000, and the server has \d+: lower maxConnections/m,
      /^fault +schema +the schema "headgate" is missing.*headgate migrate/m,
    ])
      expect(table).toMatch(line);
    expect(await examine('postgres://user:s3cret@127.0.0.1:1/a')).toMatch(/^fault +reachable +.*ECONNREFUSED/m);
    expect(table).not.toContain('s3cret');
  });
});

it('killed while it serves: decisions go on in memory, and whole ones after it is back', async () => {
  const gateway = await startInProcess(
    configOf(upstream.url, {
      store: storeIn('killed', { migrate: true }),
      storeDeadlineMs: 300,
      limits: { default: { allMethods: ['1000/1h'] } },
    }),
  );
  const ask = () => gateway.ask('GET', `${CHATS}acc_1`);
  await eventually(async () => ratesOf(await ask()).limit === 1000, 'a whole decision');
  await server.kill();
  for (let i = 0; i < 8; i++) expect((await ask()).status).toBe(200);
  expect(JSON.parse((await gateway.ask('GET', '/healthz')).text).status).toBe('degraded');
  await server.restart();
  await eventually(async () => ratesOf(await ask()).limit === 1000, 'a whole decision again');
  await eventually(
    async () => JSON.parse((await gateway.ask('GET', '/healthz')).text).status === 'ok',
    'a good health check',
  );
  await gateway.stop();
});
