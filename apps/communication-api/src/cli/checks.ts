import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { clockOf } from '../db/clock.ts';
import type { Database } from '../db/database.ts';
import { answersRequests, worksInBackground } from '../domain/process-role.ts';
import { DomainChecks } from '../domains/domain-checks.ts';
import { Domains } from '../domains/domains.ts';
import { type Instance, Instances } from '../journal/instances.ts';
import { connectRedis, type RedisSettings, settingsOf } from '../limits/redis.ts';
import { type HostResolver, systemResolver } from '../security/host-records.ts';
import { type Finding, note, ok, wrong } from './finding.ts';

const PING_MS = 5_000;
/**
 * Processes take each other for dead after 10 s without a sign of life. A clock that is off by a third of it is wrong.
 */
const MAX_CLOCK_MS = 3_000;
const NOTED_CLOCK_MS = 500;
/** The most domains that are looked up. The daily checks cover larger installations. */
const MAX_DOMAINS = 100;
const DOMAINS_AT_ONCE = 10;

/** Compares the clocks of this machine and of the database: leases and deadlines of processes are times in rows. */
export async function checkClock(db: Database): Promise<readonly Finding[]> {
  const { offsetMs, uncertainMs } = await clockOf(db);
  const off = Math.abs(offsetMs) - uncertainMs;
  const text = `this machine is ${Math.abs(offsetMs / 1_000).toFixed(1)} s ${offsetMs < 0 ? 'behind' : 'ahead of'} the database`;
  if (off > MAX_CLOCK_MS) return [wrong(`${text}. Synchronise both: emails may be taken from a process that works`)];
  return [off > NOTED_CLOCK_MS ? note(text) : ok('this machine and the database agree')];
}

export async function checkRedis(config: Config, log: Logger): Promise<readonly Finding[]> {
  if (config.REDIS_URL === undefined) {
    const place = config.DATABASE_URL === undefined ? 'the memory of the process' : 'PostgreSQL';
    return [ok(`REDIS_URL is not set: ${place} has the counters`)];
  }
  const redis = await connectRedis(config.REDIS_URL, log);
  try {
    const late = pause(PING_MS, undefined, { ref: false });
    const answer = await Promise.race([redis.ping().catch(() => undefined), late]);
    if (answer === undefined) return [wrong('the server of REDIS_URL does not answer, or refuses the password')];
    return [ok('the server of REDIS_URL answers'), ...aboutSettings(await settingsOf(redis))];
  } finally {
    redis.disconnect();
  }
}

/** Redis may lose everything without harm to an email. The loss resets the counters of the limits. */
function aboutSettings({ evictionPolicy, maxMemory, persists }: RedisSettings): readonly Finding[] {
  const findings: Finding[] = [];
  if (evictionPolicy === undefined || persists === undefined)
    return [note('its settings cannot be read: look at maxmemory-policy (noeviction), appendonly and save yourself')];
  if (maxMemory > 0 && evictionPolicy !== 'noeviction')
    findings.push(
      wrong(`maxmemory-policy is ${evictionPolicy}: Redis removes counters when it is full. Set it to noeviction`),
    );
  else findings.push(ok(`it removes nothing by itself (maxmemory-policy ${evictionPolicy})`));
  findings.push(
    persists
      ? ok('it stores its data on disk')
      : note('it stores nothing on disk: after its restart, every account has its whole allowance again'),
  );
  return findings;
}

/** Whether the processes that run now do everything that must be done. */
export async function checkRoles(db: Database, config: Config, log: Logger): Promise<readonly Finding[]> {
  if (config.DATABASE_URL === undefined) return [];
  const alive = await new Instances(db, Date.now, log, '').alive();
  if (alive.length === 0) return [note('no process runs now')];
  const findings = [ok(`${alive.length} ${alive.length === 1 ? 'process runs' : 'processes run'}: ${namesOf(alive)}`)];
  if (!alive.some(({ role }) => worksInBackground(role)))
    findings.push(wrong('none works in the background: no webhook is delivered. Start one with ROLE=worker'));
  const answering = alive.filter(({ role }) => answersRequests(role)).length;
  if (answering === 0) findings.push(wrong('none answers requests. Start one with ROLE=api'));
  return findings;
}

const namesOf = (alive: readonly Instance[]): string =>
  alive.map(({ host, pid, role }) => `${role} on ${host} (pid ${pid})`).join(', ');

/** The DNS records of the custom domains that are in use. */
export async function checkDomains(
  db: Database,
  { AUTH_URL, TRACKING_URL }: Config,
  log: Logger,
  resolver: HostResolver = systemResolver(),
): Promise<readonly Finding[]> {
  const targets = { auth: new URL(AUTH_URL).hostname, tracking: new URL(TRACKING_URL).hostname };
  const domains = new Domains(db, Date.now);
  const checks = new DomainChecks({ domains, resolver, targets, clock: Date.now, log });
  const used = await domains.inUse(MAX_DOMAINS);
  const findings: Finding[] = [];
  for (let index = 0; index < used.length; index += DOMAINS_AT_ONCE) {
    const some = used.slice(index, index + DOMAINS_AT_ONCE);
    const missing = await Promise.all(some.map((domain) => checks.missingOf(domain)));
    for (const [at, { host, purpose }] of some.entries()) {
      const types = missing[at] ?? [];
      if (types.length > 0)
        findings.push(
          wrong(
            `${host} (${purpose}): the ${types.join(' and ')} record is missing; it must lead to ${targets[purpose]}`,
          ),
        );
    }
  }
  if (used.length === 0) return [ok('no custom domain is in use')];
  const good = used.length - findings.length;
  return [...(good > 0 ? [ok(`${good} of ${used.length} have their DNS records`)] : []), ...findings];
}
