import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from 'headgate-testbed/redis-server';
import { inject } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { SendStep } from '../../src/journal/claims.ts';
import { Keys } from '../../src/keys/keys.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { cleanUpLater } from './clean-up.ts';
import { type ServiceProcess, startProcess } from './service-process.ts';
import { createTestDatabase } from './test-database.ts';

/** Longer than a claim's lease, and than a process is taken for alive. */
const PATIENCE_MS = 90_000;

export const EVERY_STEP: readonly SendStep[] = ['asked', 'taken', 'drafted', 'dispatched', 'sent', 'settled'];
export const DIRECT_STEPS = EVERY_STEP.filter((step) => step !== 'drafted');

/** Processes that share a database, and the one of them that no test ends. */
export interface Fleet {
  readonly environment: Record<string, string>;
  readonly healthy: ServiceProcess;
}

/** One email, and the account that sends it. */
export interface CrashEmail {
  readonly account: string;
  readonly key: string;
}

export interface CrashAnswer {
  readonly status: number;
  readonly body: { readonly type?: string; readonly tracking_id?: string; readonly detail?: string };
}

/** A database with an application, for processes of the built service that die. */
export interface CrashWorld {
  readonly db: Database;
  /** Starts a process, and returns the environment for the others. */
  fleet(): Promise<Fleet>;
  /** One email. Each uses a new account, so that no limit is in the way. */
  newEmail(provider: string, name: string, credentials: unknown): Promise<CrashEmail>;
  /** The environment of each process. */
  readonly environment: Record<string, string>;
  /** A process of a fleet. */
  start(fleet: Fleet): Promise<ServiceProcess>;
  /** The request of an email. */
  headers(email: CrashEmail): Record<string, string>;
  body(email: CrashEmail): string;
  send(url: string, email: CrashEmail): Promise<Response>;
  /** Retries as a client does: as long as the answer says that a retry makes sense. */
  retry(fleet: Fleet, email: CrashEmail): Promise<CrashAnswer>;
  /** Sends in a separate process that kills or freezes itself at a step. */
  sendUntil(
    fleet: Fleet,
    email: CrashEmail,
    step: SendStep,
    signal: 'SIGKILL' | 'SIGSTOP',
  ): Promise<{ readonly process: ServiceProcess; readonly answered: Promise<string> }>;
}

/**
 * @param environment of every process
 * @param port the PostgreSQL server
 */
export async function startCrashWorld(
  environment: Readonly<Record<string, string>> = {},
  port = inject('postgres').port,
): Promise<CrashWorld> {
  const { url, drop } = await createTestDatabase(undefined, port);
  cleanUpLater(drop);
  const shared = { ...environment, DATABASE_URL: url, SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  const db = openServer(url, () => undefined);
  cleanUpLater(() => db.destroy());
  await migrate(db);
  const envelope = new Envelope(readConfig(shared).SECRET_KEYS ?? []);
  const accounts = new Accounts(db, envelope, Date.now, new Events(Date.now));
  const applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  const key = { name: 'k', role: 'service', scopeId: null, expiresAt: new Date(Date.now() + 3_600_000) } as const;
  const keys = new Keys(db, Date.now, { warn: () => undefined });
  const { token } = await keys.create(applicationId, 'development', key);

  const headers: CrashWorld['headers'] = ({ key: name }) => ({
    ...{ 'x-api-key': token, 'idempotency-key': name, 'content-type': 'application/json' },
  });
  const body: CrashWorld['body'] = ({ account }) =>
    JSON.stringify({ account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' });
  const send: CrashWorld['send'] = (origin, email) =>
    fetch(`${origin}/api/v1/emails`, { method: 'POST', headers: headers(email), body: body(email) });

  return {
    db,
    ...{ headers, body, send },
    environment: shared,
    fleet: async () => ({ environment: shared, healthy: await startProcess(shared) }),
    start: ({ environment: given }) => startProcess(given),
    newEmail: async (provider, name, credentials) => {
      const account = await accounts.insert(applicationId, {
        ...{ provider, providerUserId: name, name, scopeId: null, secret: { credentials } },
      });
      return { account: account?.id ?? '', key: randomUUID() };
    },
    retry: async ({ healthy }, email) => {
      const deadline = Date.now() + PATIENCE_MS;
      for (;;) {
        const answer = await send(healthy.url, email);
        const body = (await answer.json()) as CrashAnswer['body'];
        const again = answer.headers.get('retry-after');
        if (answer.status === 201 || (again === null && answer.status < 500)) return { status: answer.status, body };
        if (Date.now() > deadline) throw new Error(`No end of retries: ${answer.status} ${JSON.stringify(body)}`);
        await pause(Math.min(Number(again ?? 1), 2) * 1_000);
      }
    },
    sendUntil: async (fleet, email, step, signal) => {
      const process = await startProcess({ ...fleet.environment, AT_STEP: step, AT_STEP_SIGNAL: signal });
      const answered = send(process.url, email).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => 'no answer',
      );
      const reached =
        signal === 'SIGKILL' ? process.ended : until(() => isStopped(process.child.pid), 'the process is frozen');
      // An answer means that the step was not reached.
      const instead = await Promise.race([reached.then(() => undefined), answered]);
      if (instead !== undefined && instead !== 'no answer') throw new Error(`Answered before "${step}": ${instead}`);
      await reached;
      return { process, answered };
    },
  };
}

const isStopped = (pid: number | undefined): boolean =>
  /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
