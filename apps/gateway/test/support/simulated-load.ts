import { Agent } from 'node:http';
import { readTrace, type SimulationReport, simulate } from 'headgate-simulate';
import { eventually } from 'headgate-testbed/raw-http';
import { expect } from 'vitest';
import { policyOf } from '../../src/cli/trace-flags.ts';
import { checkConfig } from '../../src/config/config.ts';
import type { Config } from '../../src/config/schema.ts';
import { configOf } from './gateway.ts';
import { startInProcess } from './in-process.ts';

/** A gateway that has run, and what its clients saw. */
export interface LoadedGateway {
  readonly config: Config;
  readonly log: string;
  /** Requests that limits decided about, by what the client got: 429, or anything else. */
  readonly seen: { accepted: number; rejected: number };
}

const ACCOUNTS = 5;
const CLIENTS = 16;
/** Longer than the longest window, so that all of them end during the run. */
const MIN_MS = 1_300;
const MAX_MS = 20_000;
const MIN_REJECTED = 50;
const MIN_ACCEPTED = 50;

/**
 * Several clients send requests of several accounts to three routes: one with keys that are used again, one
 * whose upstream refuses the connection, so that each charge is refunded. Windows end all the time.
 */
export async function loadGateway(upstream: string, rest: object = {}): Promise<LoadedGateway> {
  const given = {
    ...configOf(upstream),
    upstreams: { away: 'http://127.0.0.1:1' },
    routes: [
      { route: 'GET /api/v1/chats', account: 'query.account_id' },
      { route: 'POST /api/v1/emails', account: 'query.account_id', idempotent: true },
      { route: 'GET /api/v1/away', account: 'query.account_id', upstream: 'away' },
    ],
    limits: {
      default: {
        allMethods: { windows: ['4/300ms', '9/1200ms'], scope: 'account' },
        routes: { 'GET /api/v1/chats': ['2/200ms', '5/900ms'], 'GET /api/v1/away': ['1/100ms'] },
      },
      accounts: { acc_2: { allMethods: ['2/240ms'] } },
    },
    log: { account: true },
    ...rest,
  };
  const gateway = await startInProcess(given);
  // A connection per request would take most of the time.
  const agent = new Agent({ keepAlive: true });
  const seen = { accepted: 0, rejected: 0 };
  const from = Date.now();
  // A busy machine needs longer until limits have rejected enough.
  const isOver = (): boolean => {
    const ms = Date.now() - from;
    return ms > MAX_MS || (ms > MIN_MS && seen.rejected > MIN_REJECTED && seen.accepted > MIN_ACCEPTED);
  };
  const client = async (number: number): Promise<void> => {
    for (let i = 0; !isOver(); i++) {
      const account = `acc_${1 + ((number + i) % ACCOUNTS)}`;
      const kind = (number * 7 + i) % 5;
      const [method, path, headers] =
        kind === 0
          ? (['GET', '/api/v1/away', {}] as const)
          : kind === 1
            ? (['POST', '/api/v1/emails', { 'idempotency-key': `key-${number}-${i >> 3}` }] as const)
            : (['GET', '/api/v1/chats', {}] as const);
      const { status, headers: fields } = await gateway.ask(method, `${path}?account_id=${account}`, headers, {
        agent,
      });
      if (fields['idempotency-replayed'] === 'true' || status === 409) continue;
      if (status === 429) seen.rejected++;
      else seen.accepted++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  agent.destroy();
  await gateway.stop();
  const decided = () =>
    gateway.lines().filter(({ msg, at }) => msg === 'decision' || (msg === 'request' && typeof at === 'number'));
  await eventually(() => decided().length >= seen.accepted + seen.rejected, 'every line of the log');
  const log = gateway
    .lines()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
  return { config: checkConfig(given, 'test'), log, seen };
}

/** Judges the log by the limits of the gateway that wrote it. Each decision has to be the same. */
export async function expectPredicted({ config, log, seen }: LoadedGateway): Promise<SimulationReport> {
  const report = await simulate({ current: policyOf(config), trace: readTrace(log, { format: 'headgate' }) });
  expect(report.logged).toEqual({ ...seen, agree: seen.accepted + seen.rejected, differ: 0, first: [] });
  const { none, both } = report.matrix;
  expect({ accepted: none, rejected: both }).toEqual(seen);
  expect(report.trace).toMatchObject({ late: 0, inexact: 0, changes: 0 });
  expect(report.trace.skipped.unreadable).toBeUndefined();
  expect(report.lostSettlements).toBe(0);
  return report;
}
