import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createFleet } from 'headgate-bench/fleet';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { newDatabase, startPostgresServer } from 'headgate-bench/postgres-server';
import { versionOf } from 'headgate-bench/provenance';
import { freePort, startRedisServer } from 'headgate-bench/redis-server';
import { startHaraka } from './haraka.mjs';
import { requestBytes, sendAll } from './service-load.mjs';
import { buildServiceParts } from './service-parts.mjs';

/** Several, because PostgreSQL locks the row of an account for each row that refers to it. */
export const ACCOUNTS = 100;
const MUCH = ['1000000/1m'];
const APP = new URL('../../', import.meta.url);
export const SERVICE_BUILD = fileURLToPath(new URL('scripts/build.mjs', APP));
/** The built service. */
export const SERVICE_MAIN = new URL('dist/main.js', APP);

export const [BARE, EMBEDDED, SERVERS] = ['bare Fastify', 'embedded', 'PostgreSQL + Redis'];
/** Counters are in PostgreSQL, too. */
export const POSTGRES = 'PostgreSQL';
export const [MOCK_EMBEDDED, MOCK_SERVERS] = ['mock directly, embedded', 'mock directly, PostgreSQL'];
/** They send by SMTP, to mail servers that keep nothing. */
export const [SMTP_EMBEDDED, SMTP_SERVERS] = ['SMTP, embedded', 'SMTP, PostgreSQL + Redis'];
export const SMTP_WITHOUT_COPIES = 'SMTP without copies, PostgreSQL + Redis';
export const NODEMAILER = 'nodemailer directly';
export const [QUEUE, HARAKA] = ['BullMQ + nodemailer', 'Haraka'];
/** The other build of the service that `--against` names. */
export const AGAINST = { [EMBEDDED]: `${EMBEDDED}, against`, [POSTGRES]: `${POSTGRES}, against` };
export const SMTP_AGAINST = { [SMTP_SERVERS]: `${SMTP_SERVERS}, against` };
const MEMBERS = {
  [BARE]: { kind: 'bare' },
  [EMBEDDED]: { kind: 'service' },
  [SERVERS]: { kind: 'service', onServers: true },
  [POSTGRES]: { kind: 'service', onServers: true, more: { REDIS_URL: undefined } },
  [AGAINST[EMBEDDED]]: { kind: 'service', isOther: true },
  [AGAINST[POSTGRES]]: { kind: 'service', isOther: true, onServers: true, more: { REDIS_URL: undefined } },
  [SMTP_EMBEDDED]: { kind: 'service', isSmtp: true },
  [SMTP_SERVERS]: { kind: 'service', isSmtp: true, onServers: true },
  // With a database of its own, because processes on one database file the copies of each other.
  [SMTP_WITHOUT_COPIES]: {
    ...{ kind: 'service', isSmtp: true, onServers: true },
    ...{ database: 'without_copies', more: { APPEND_MAX_BYTES: '0' } },
  },
  [SMTP_AGAINST[SMTP_SERVERS]]: {
    ...{ kind: 'service', isSmtp: true, isOther: true, onServers: true, database: 'smtp_against' },
  },
  [NODEMAILER]: { kind: 'nodemailer', isSmtp: true },
  [QUEUE]: { kind: 'queue', isSmtp: true, onServers: true },
  // Haraka is a program of its own. The member is its client.
  [HARAKA]: { kind: 'nodemailer', isSmtp: true, isToHaraka: true },
  [MOCK_EMBEDDED]: { kind: 'mock' },
  [MOCK_SERVERS]: { kind: 'mock', onServers: true },
};

/**
 * Builds the service, and starts members of a fleet with databases of their own: see service-member.mjs.
 * @param names some of the names above
 * @param against the `dist` folder of another build of the service; it must find the packages
 * @param profile folder for CPU profiles
 * @returns `members[name]`: `{ port, pid, ask(request) }` with what `service-seed.mjs` has made, `pids` of the servers,
 *   `askSinks(wanted)`, `versions` and `stop()`
 */
export async function startServices(names, { against, profile }) {
  execFileSync(process.execPath, [SERVICE_BUILD, '--if-changed'], { stdio: ['ignore', 'ignore', 'inherit'] });
  await buildServiceParts();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-service-'));
  const needsServers = names.some((name) => MEMBERS[name].onServers);
  const [postgres, redis] = needsServers ? await Promise.all([startPostgresServer(), startRedisServer()]) : [];
  const fleet = createFleet(new URL('service-member.mjs', import.meta.url), profile, ['--expose-gc']);
  const onServers = {
    DATABASE_URL: postgres?.url,
    REDIS_URL: `redis://127.0.0.1:${redis?.port}`,
    SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  };
  const sinks = names.some((name) => MEMBERS[name].isSmtp) ? await startSinks(fleet) : undefined;
  const shared = {};
  const members = {};
  const others = [];
  for (const [index, name] of names.entries()) {
    const { kind, ...member } = MEMBERS[name];
    const main = member.isOther ? new URL('main.js', pathToFileURL(`${resolve(against)}/`)) : SERVICE_MAIN;
    const own = member.database && { DATABASE_URL: await newDatabase(postgres.url, member.database) };
    const environment = {
      // The mail servers of the benchmark are on this machine.
      EGRESS_POLICY: 'off',
      ...(member.onServers ? { ...onServers, ...own } : { DATA_DIR: join(folder, String(index)) }),
      ...member.more,
    };
    const provider = member.isSmtp ? 'imap' : 'mock';
    const seed = await seedOf(kind, member.onServers && own === undefined ? shared : {}, provider, () =>
      newSeed(environment, { provider, credentials: member.isSmtp ? credentialsFor(sinks) : { drafts: true } }),
    );
    const port = await freePort();
    const { between, ...places } = await placesOf(member, sinks);
    if (between !== undefined) others.push(between);
    const settings = { kind, main: main.href, environment, port, accounts: seed.accounts, redisPort: redis?.port };
    const pid = await fleet.start(name, { ...settings, ...places });
    members[name] = { port, ...seed, pid: between?.pid ?? pid, ask: (request) => fleet.ask(name, request) };
    if (kind === 'service') await liftLimits(members[name], provider);
  }
  return {
    members,
    pids: { postgres: postgres?.pid, redis: redis?.pid },
    askSinks: (wanted) => fleet.ask('sinks', wanted),
    versions: {
      fastify: versionOf('fastify', import.meta.url),
      ...(sinks === undefined ? {} : { nodemailer: versionOf('nodemailer', import.meta.url) }),
      pglite: versionOf('@electric-sql/pglite', import.meta.url),
      ...(needsServers ? { postgresql: postgres.version, redis: redis.version } : {}),
    },
    async stop() {
      await fleet.stop();
      for (const other of others) other.stop();
      await postgres?.stop();
      redis?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where a member sends to: the mail servers, or a program between them and it. */
async function placesOf({ isToHaraka }, sinks) {
  if (!isToHaraka) return { sinks, hasLogin: true };
  const between = await startHaraka(sinks.smtpPort);
  return { sinks: { smtpPort: between.port }, hasLogin: false, between };
}

/** What a member sends with. @param shared the seeds of members with the same database, by provider */
async function seedOf(kind, shared, provider, make) {
  if (kind !== 'service' && kind !== 'mock') return { token: 'none', accounts: Array(ACCOUNTS).fill('none') };
  shared[provider] ??= await make();
  return shared[provider];
}

const newSeed = (environment, account) =>
  inFreshProcess(
    new URL('service-seed.mjs', import.meta.url),
    [environment, ACCOUNTS, account].map((one) => JSON.stringify(one)),
  );

async function startSinks(fleet) {
  await fleet.start('sinks', { kind: 'sinks' });
  return fleet.ask('sinks', 'ports');
}

function credentialsFor({ smtpPort, imapPort }) {
  const server = { host: '127.0.0.1', encryption: 'none', user: 'ann', password: 'secret' };
  return { imap: { ...server, port: imapPort }, smtp: { ...server, port: smtpPort } };
}

/** So many emails are more than the recommended limits allow. */
async function liftLimits({ port, token }, provider) {
  const headers = { 'x-api-key': token, 'content-type': 'application/json' };
  const put = (route) => requestBytes('/v2/limits', headers, JSON.stringify({ provider, route, windows: MUCH }), 'PUT');
  await sendAll(port, [[put(null), put('POST /api/v1/emails')]]);
}
