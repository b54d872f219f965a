import { createLimiter } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { createShadowedLimiter } from 'headgate/internal';
import { type AdminApi, createAdminApi } from '../admin/admin-api.ts';
import { type Answers, NoAnswerError } from '../admin/combined-figures.ts';
import type { Figure, FigureName } from '../admin/figures.ts';
import { operationsOf } from '../admin/operations/index.ts';
import { createAccounts } from '../admission/accounts.ts';
import type { Config } from '../config/schema.ts';
import type { Health } from '../operations/health.ts';
import type { Log } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { openParts } from '../process-parts.ts';
import type { Subscription } from '../traffic/event-feed.ts';
import type { WorkerEvents } from './messages.ts';
import type { WorkerPool } from './pool.ts';

/** The Admin API of a primary. */
export interface PrimaryAdmin extends AdminApi {
  /** Events of workers. */
  onEvents(events: WorkerEvents): void;
  reload(config: Config): Promise<void>;
  close(): Promise<void>;
}

/** The parts of a primary that its Admin API needs. */
export interface PrimaryAdminOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly pool: Pick<WorkerPool, 'ask' | 'obey'>;
}

/** Figures that an answer shows beside what the store says. Without any worker, the rest is still right. */
const BESIDE: readonly FigureName[] = ['candidate', 'rates'];

/**
 * The primary opens the store itself, so it reads and changes there whatever its workers do. It asks the workers for the
 * figures of their requests.
 */
export async function openPrimaryAdmin(
  config: Config,
  { log, metrics, health, pool }: PrimaryAdminOptions,
): Promise<PrimaryAdmin> {
  const parts = await openParts(config, { log, metrics, isReady: () => health.isReady });
  const { traffic, sharedLimits, shadow, store } = parts;
  const limiter = createShadowedLimiter(
    createLimiter({ store: parts.limits, limits: sharedLimits, validate: false }),
    () => shadow.checks,
  );
  let current = { config, accounts: accountsOf(config) };
  let clients = 0;
  let began: Promise<void> | undefined;
  const begin = async (): Promise<void> => {
    const { each } = await pool.obey('events', true);
    const missed = each.flat().sort((a, b) => a.atMs - b.atMs);
    traffic.addSent(missed, 0);
  };
  const leave = (): void => {
    clients -= 1;
    if (clients > 0) return;
    began = undefined;
    void pool.obey('events', false);
  };
  const subscribe = async (subscription: Subscription) => {
    clients += 1;
    began ??= begin();
    await began;
    const end = traffic.subscribe(subscription);
    if (typeof end === 'string') {
      leave();
      return end;
    }
    return () => {
      end();
      leave();
    };
  };
  const operations = operationsOf({
    ...parts,
    config: () => current.config,
    limiter: () => limiter,
    accounts: () => current.accounts,
    async figures(name, ...args) {
      const { each, workers } = await pool.ask('figures', { name, args });
      if (each.length === 0 && !BESIDE.includes(name)) throw new NoAnswerError();
      return { each, workers } as Answers<Figure<typeof name>>;
    },
    subscribe,
    isReady: () => health.isReady,
    async setReady(isReady) {
      health.setReady(isReady);
      return (await pool.obey('ready', isReady)).workers;
    },
  });
  await parts.ready();
  await parts.adopt(config);
  const api = createAdminApi({ operations, settings: () => settingsOf(current.config), log, metrics });
  return {
    get isOn() {
      return api.isOn;
    },
    handle: (request, response) => api.handle(request, response),
    onEvents: ({ events, dropped }) => traffic.addSent(events, dropped),
    async reload(next) {
      current = { config: next, accounts: accountsOf(next) };
      store.setApplications(next);
      await parts.adopt(next);
      traffic.onState({ state: 'reloaded' });
    },
    close: () => parts.close(),
  };
}

/** The settings of the Admin API, without an `admin` in the config as well. */
export function settingsOf({ admin }: Config): Pick<NonNullable<Config['admin']>, 'tokens' | 'hosts' | 'console'> {
  return admin ?? { tokens: [], hosts: [], console: false };
}

/** It looks accounts up by their ids, and never by a request. */
function accountsOf(config: Config) {
  return createAccounts(config, createClientIp({ validate: false }));
}
