import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { type Backend, type Balancer, startBalancer } from '../support/balancer.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { type CrashEmail, type CrashWorld, startCrashWorld } from '../support/crashes.ts';
import { type MailSink, type SinkUser, startMailSink } from '../support/mail-sink.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';

/** Longer than an attempt belongs to a process, with this deadline of providers. */
const SEND_TIMEOUT_MS = '5000';
const CLIENTS = 6;
const PATIENCE_MS = 90_000;
/** How long the mail server takes for an email, so that some are always on their way. */
const TAKE_MS = 40;

const sink: MailSink = await startMailSink();

interface Running extends Backend {
  readonly process: ServiceProcess;
}

async function run(environment: Record<string, string>): Promise<Running> {
  const process = await startProcess({ ...environment, ADMIN_PORT: '0' });
  const [, adminUrl = ''] = /(http:\/\/\S+)\/readyz/.exec(process.output()) ?? [];
  return { url: process.url, adminUrl, process };
}

/** Processes behind a balancer, with a database and a Redis of their own, and what a mail server got from them. */
async function startFleet(count: number, settings: Record<string, string> = {}, postgresPort?: number) {
  const world = await startCrashWorld({ SEND_TIMEOUT_MS, APPEND_MAX_BYTES: '0', ...settings }, postgresPort);
  const user = sink.user(() => pause(TAKE_MS));
  const environment = world.environment;
  const balancer = await startBalancer();
  const running = await Promise.all(Array.from({ length: count }, () => run(environment)));
  await Promise.all(running.map((each) => balancer.add(each)));
  return { world, user, environment, balancer, running };
}

interface Load {
  /** The first answer to each email that was asked for. */
  readonly first: (string | number)[];
  /** The last one. */
  readonly last: number[];
  /** Ends when every email has its last answer. */
  stop(): Promise<void>;
}

/** One request, and whether a client has reason to repeat it. */
async function ask(world: CrashWorld, balancer: Balancer, email: CrashEmail) {
  const answer = await world.send(balancer.url, email).catch((error: Error) => error.message);
  if (typeof answer === 'string') return { status: answer, isFinal: false };
  const { status, headers } = answer;
  await answer.arrayBuffer();
  return { status, isFinal: status === 201 || (status < 500 && headers.get('retry-after') === null) };
}

/**
 * Clients that send one email after the other, each with a key, and retry as clients do.
 * @param copies how many requests with the same key are sent at the same time
 */
function startLoad(world: CrashWorld, balancer: Balancer, user: SinkUser, copies = 1): Load {
  const load = { first: [] as (string | number)[], last: [] as number[] };
  let isOver = false;
  let emails = 0;
  const one = async (email: CrashEmail): Promise<number> => {
    const deadline = Date.now() + PATIENCE_MS;
    for (let attempt = 1; Date.now() < deadline; attempt++) {
      const { status, isFinal } = await ask(world, balancer, email);
      if (attempt === 1) load.first.push(status);
      if (isFinal) return Number(status);
      await pause(200);
    }
    throw new Error('No end of retries.');
  };
  const client = async (): Promise<void> => {
    while (!isOver) {
      // Each has an account of its own, so that no limit is in the way.
      const email = await world.newEmail('imap', `${++emails}-${user.address}`, user.credentials());
      load.last.push(...(await Promise.all(Array.from({ length: copies }, () => one(email)))));
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  return {
    ...load,
    stop: async () => {
      isOver = true;
      await Promise.all(clients);
    },
  };
}

const idsOf = ({ received }: SinkUser): readonly (string | undefined)[] =>
  received.map((message) => /^message-id: (\S+)/im.exec(message)?.[1]);

const countsOf = (values: readonly (string | number)[]): Record<string, number> =>
  Object.fromEntries([...new Set(values)].map((value) => [value, values.filter((each) => each === value).length]));

test('a rolling restart of three processes under load: no request fails, and every email is received once', async () => {
  // Many times as long as the balancer needs to notice, also on a busy machine.
  const settings = { SHUTDOWN_DELAY_MS: '1500' };
  const { world, user, environment, balancer, running } = await startFleet(3, settings);
  const load = startLoad(world, balancer, user);
  await until(() => load.last.length > 20, 'the load has begun', PATIENCE_MS);
  for (const old of running) {
    old.process.child.kill('SIGTERM');
    expect(await old.process.ended).toBe(0);
    balancer.remove(old);
    await balancer.add(await run(environment));
    const before = load.last.length;
    await until(() => load.last.length > before + 20, 'the load goes on', PATIENCE_MS);
  }
  await load.stop();
  const emails = load.last.length;
  // Not one of them needed a retry.
  expect(countsOf(load.first)).toEqual({ 201: emails });
  expect(user.received).toHaveLength(emails);
  expect(new Set(idsOf(user)).size).toBe(emails);
  expect(await world.db.selectFrom('sends').select('id').where('state', '<>', 'sent').execute()).toEqual([]);
});

test('a send whose client has left ends before its process does', async () => {
  const { world, running } = await startFleet(1);
  const user = sink.user(() => pause(1_500));
  const email = await world.newEmail('imap', user.address, user.credentials());
  const [process] = running as [Running];
  // The end of the process waits some seconds for keys anyway.
  const { 'idempotency-key': _, ...headers } = world.headers(email);
  const client = request(new URL('/api/v1/emails', process.url), { method: 'POST', headers });
  client.on('error', () => undefined).end(world.body(email));
  await until(() => user.received.length === 1, 'the mail server has the email', PATIENCE_MS);
  client.destroy();
  process.process.child.kill('SIGTERM');
  expect(await process.process.ended).toBe(0);
  expect(await world.db.selectFrom('sends').select('state').execute()).toEqual([{ state: 'sent' }]);
  expect(user.received).toHaveLength(1);
});

test('Redis is flushed again and again under load: two requests with one key still send one email', async () => {
  const server = await startRedis();
  cleanUpLater(() => server.stop());
  const REDIS_URL = `redis://127.0.0.1:${server.port}`;
  const { world, user, balancer } = await startFleet(2, { REDIS_URL });
  const redis = new Redis(REDIS_URL);
  cleanUpLater(() => redis.disconnect());
  const load = startLoad(world, balancer, user, 2);
  let flushes = 0;
  while (load.last.length < 200) {
    await redis.flushall();
    flushes++;
    await pause(20);
  }
  await load.stop();
  expect(flushes).toBeGreaterThan(10);
  expect(countsOf(load.last)).toEqual({ 201: load.last.length });
  expect(user.received).toHaveLength(load.last.length / 2);
  expect(new Set(idsOf(user)).size).toBe(load.last.length / 2);
});

test('PostgreSQL is killed and started again under load: every email is received once, and every client is told so', async () => {
  const postgres = await startPostgres();
  cleanUpLater(() => postgres.stop());
  const { world, user, balancer, running } = await startFleet(2, {}, postgres.port);
  // The accounts are made before: the test needs the database for them, too.
  const emails: CrashEmail[] = [];
  for (let count = 0; count < 150; count++)
    emails.push(await world.newEmail('imap', `${count}-${user.address}`, user.credentials()));
  const next = emails.values();
  const load = startLoad({ ...world, newEmail: async () => next.next().value ?? endless() }, balancer, user);
  await until(() => load.last.length > 20, 'the load has begun', PATIENCE_MS);
  await postgres.kill();
  const [first] = running;
  const state = async () => (await fetch(`${first?.adminUrl}/readyz`)).json();
  // A check that has begun before may still be answered.
  await expect.poll(state).toMatchObject({ status: 'unready', database: 'away' });
  expect((await fetch(`${first?.adminUrl}/livez`)).status).toBe(200);
  expect(await (await fetch(`${first?.adminUrl}/metrics`)).text()).toMatch(/^communication_api_database_up 0$/m);
  await pause(1_000);
  await postgres.restart();
  await until(() => load.last.length === emails.length, 'every email has an answer', PATIENCE_MS);
  expect(countsOf(load.last)).toEqual({ 201: emails.length });
  expect(user.received).toHaveLength(emails.length);
  expect(new Set(idsOf(user)).size).toBe(emails.length);
});

const endless = (): Promise<never> => new Promise(() => undefined);
