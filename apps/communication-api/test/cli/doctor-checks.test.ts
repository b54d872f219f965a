import { randomBytes, randomUUID } from 'node:crypto';
import { startRedis } from 'headgate-testbed/redis-server';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Applications } from '../../src/applications/applications.ts';
import { checkClock, checkDomains, checkRedis, checkRoles } from '../../src/cli/checks.ts';
import type { Finding } from '../../src/cli/finding.ts';
import { readConfig } from '../../src/config.ts';
import type { ProcessRole } from '../../src/domain/process-role.ts';
import { Domains } from '../../src/domains/domains.ts';
import { Instances } from '../../src/journal/instances.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { openTestDatabase } from '../support/databases.ts';

const log = pino({ level: 'silent' });
const { db, url, close } = await openTestDatabase('PostgreSQL');
cleanUpLater(close);

const configOf = (environment: Record<string, string> = {}) =>
  readConfig({
    ...{ DATABASE_URL: url ?? '', SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`, PORT: '0' },
    ...environment,
  });
const linesOf = (findings: readonly Finding[]): readonly string[] =>
  findings.map(({ level, text }) => `${level}: ${text}`);

test('the clock is compared with the one of the database', async () => {
  expect(linesOf(await checkClock(db))).toEqual(['ok: this machine and the database agree']);
  const now = Date.now;
  try {
    Date.now = () => now() + 60_000;
    expect(linesOf(await checkClock(db))).toEqual([
      expect.stringMatching(/^wrong: this machine is (60\.0|59\.9|60\.1) s ahead of the database\. Synchronise both/),
    ]);
    Date.now = () => now() - 1_500;
    expect(linesOf(await checkClock(db))).toEqual([
      expect.stringMatching(/^note: this machine is 1\.[456] s behind the database$/),
    ]);
  } finally {
    Date.now = now;
  }
});

test('Redis that removes counters is wrong; one without a disk is noted', async () => {
  const plain = await startRedis();
  cleanUpLater(() => plain.stop());
  const evicting = await startRedis('--maxmemory', '64mb', '--maxmemory-policy', 'allkeys-lru', '--appendonly', 'yes');
  cleanUpLater(() => evicting.stop());
  const of = async (port: number) =>
    linesOf(await checkRedis(configOf({ REDIS_URL: `redis://127.0.0.1:${port}` }), log));
  expect(await of(plain.port)).toEqual([
    'ok: the server of REDIS_URL answers',
    'ok: it removes nothing by itself (maxmemory-policy noeviction)',
    'note: it stores nothing on disk: after its restart, every account has its whole allowance again',
  ]);
  expect(await of(evicting.port)).toEqual([
    'ok: the server of REDIS_URL answers',
    'wrong: maxmemory-policy is allkeys-lru: Redis removes counters when it is full. Set it to noeviction',
    'ok: it stores its data on disk',
  ]);
  await plain.stop();
  expect(await of(plain.port)).toEqual([expect.stringMatching(/^wrong: the server of REDIS_URL does not answer/)]);
});

test('the processes that run must answer requests and work in the background', async () => {
  const started: Instances[] = [];
  const start = async (role: ProcessRole): Promise<void> => {
    const instance = new Instances(db, Date.now, log, randomUUID(), role);
    await instance.start();
    started.push(instance);
  };
  const findings = async () => linesOf(await checkRoles(db, configOf(), log));
  expect(await findings()).toEqual(['note: no process runs now']);
  await start('api');
  expect(await findings()).toEqual([
    expect.stringMatching(/^ok: 1 process runs: api on \S+ \(pid \d+\)$/),
    'wrong: none works in the background: no webhook is delivered. Start one with ROLE=worker',
  ]);
  await start('worker');
  expect(await findings()).toEqual([expect.stringMatching(/^ok: 2 processes run: api on .*, worker on /)]);
  await start('all');
  expect(await findings()).toEqual([expect.stringMatching(/^ok: 3 processes run/)]);
  for (const instance of started) await instance.close();
  await start('worker');
  expect(await findings()).toEqual([
    expect.stringMatching(/^ok: 1 process runs: worker/),
    'wrong: none answers requests. Start one with ROLE=api',
  ]);
  await started.at(-1)?.close();
});

test('custom domains that are in use need their DNS records; nothing is changed', async () => {
  const config = configOf({ BASE_URL: 'https://api.mail.example', AUTH_URL: 'https://auth.mail.example' });
  const records = new Map<string, string>();
  const resolver = {
    resolveCname: async (name: string) => [records.get(`CNAME ${name}`) ?? ''],
    resolveTxt: async (name: string) => [[records.get(`TXT ${name}`) ?? '']],
  };
  const findings = async () => linesOf(await checkDomains(db, config, log, resolver));
  expect(await findings()).toEqual(['ok: no custom domain is in use']);
  const { id: applicationId } = await new Applications(db, Date.now).create('Shop', 'production');
  const domains = new Domains(db, Date.now);
  for (const [host, purpose] of [
    ['connect.shop.example', 'auth'],
    ['links.shop.example', 'tracking'],
    ['pending.shop.example', 'auth'],
  ] as const) {
    const creation = await domains.create(applicationId, host, purpose);
    if (creation.kind !== 'created' || host.startsWith('pending')) continue;
    const { domain } = creation;
    await domains.setVerified(applicationId, domain.id);
    records.set(`CNAME ${host}`, purpose === 'auth' ? 'auth.mail.example' : 'api.mail.example');
    records.set(`TXT _communication-api.${host}`, `ca-verify=${domain.token}`);
  }
  expect(await findings()).toEqual(['ok: 2 of 2 have their DNS records']);
  records.delete('CNAME connect.shop.example');
  const before = await db.selectFrom('domains').selectAll().orderBy('id').execute();
  expect(await findings()).toEqual([
    'ok: 1 of 2 have their DNS records',
    'wrong: connect.shop.example (auth): the CNAME record is missing; it must lead to auth.mail.example',
  ]);
  expect(await db.selectFrom('domains').selectAll().orderBy('id').execute()).toEqual(before);
});
