import type { Server } from 'node:http';
import { isHeadgateError } from '../core/errors.ts';
import { createGate } from '../gate/create-gate.ts';
import { createIdempotency } from '../idempotency/idempotency.ts';
import { createAccounts } from './admission/accounts.ts';
import { createAdmission } from './admission/admission.ts';
import { createKeys } from './admission/keys.ts';
import { createRoutes } from './admission/routes.ts';
import { limiterOf } from './config/limits.ts';
import type { Config } from './config/schema.ts';
import type { Exchange } from './exchange/exchange.ts';
import { createAdminServer } from './operations/admin.ts';
import type { Log } from './operations/log.ts';
import { createMetrics } from './operations/metrics.ts';
import { createProxy } from './proxy/proxy.ts';
import { type Address, listen } from './server/listen.ts';
import { createGatewayServer } from './server/server.ts';
import { openStore } from './store/store.ts';

/** A gateway that runs. */
export interface Gateway {
  readonly address: Address;
  readonly adminAddress: Address | undefined;
  /** Stops accepting, waits for what runs, at most `drainMs`, and closes everything. Resolves to how many requests were cut off. */
  stop(): Promise<number>;
}

const MAX_TIMER_MS = 2_147_483_647;
/** Longest wait at the end for outcomes to be acknowledged by the store. */
const CLOSE_MS = 2_000;

/**
 * Builds a gateway from its config, and listens.
 * @throws ListenError
 */
export async function startGateway(config: Config, log: Log): Promise<Gateway> {
  const store = await openStore(config, log);
  const metrics = createMetrics(store.figures);
  const limiter = limiterOf(config, metrics.measured(store.limits));
  const { lateAnswerMs: _, ...settings } = config.idempotency;
  const idempotency = createIdempotency({
    ...settings,
    store: store.claims,
    reconcile: undefined,
    onEvent: (event) => metrics.onIdempotency(event),
  });
  metrics.observe([
    { name: 'idempotency_in_flight', help: 'Claims that this process holds', value: () => idempotency.held },
    {
      name: 'idempotency_background',
      help: 'Commands that are retried until acknowledged',
      value: () => idempotency.pending,
    },
  ]);
  const gate = createGate<Exchange>({
    limiter,
    idempotency,
    idempotent: ({ idempotent }) => idempotent?.request,
    account: ({ account }) => account?.id,
    route: ({ route }) => route?.name,
    provider: ({ account }) => account?.provider,
    headers: config.headers,
    onEvent(event) {
      metrics.onEvent(event);
      if (event.type !== 'failure') return;
      // A duplicate that still waits when the process stops is no fault of anybody's.
      const level = isHeadgateError(event.error, 'closed') ? 'info' : 'error';
      log.logger[level]({ req_id: event.requestId, stage: event.stage, err: event.error }, 'gate failure');
    },
  });
  const proxy = createProxy({
    upstream: config.upstream,
    timeoutMs: config.upstreamTimeoutMs,
    maxBodyBytes: config.maxBodyBytes,
    onHead: ({ route }, seconds) => metrics.onUpstream(route?.name ?? 'none', seconds),
  });
  const main = createGatewayServer({
    admit: createAdmission({
      routes: createRoutes(config),
      keys: createKeys(config.keys),
      accounts: createAccounts(config.accounts),
      maxBodyBytes: config.maxBodyBytes,
    }),
    gate,
    proxy,
    log,
    metrics,
    health: () => store.health(),
    silenceMs: Math.min(MAX_TIMER_MS, Math.max(300_000, config.upstreamTimeoutMs + 60_000)),
  });
  const admin = config.admin === undefined ? undefined : createAdminServer(metrics);
  const close = async (): Promise<void> => {
    for (const server of [main.server, admin]) cut(server);
    // What breaks now is still an outcome, to be kept.
    await proxy.close();
    await Promise.all([idempotency.close({ timeoutMs: CLOSE_MS }), limiter.close()]);
    store.close();
  };
  try {
    const adminAddress = admin && config.admin && (await listen(admin, config.admin, 'admin.port in the config'));
    const address = await listen(main.server, config.listen, '--port');
    return {
      address,
      adminAddress,
      async stop() {
        main.drain();
        main.server.close();
        const idle = Promise.all([main.connections.idle(), idempotency.idle()]);
        await Promise.race([idle, elapsed(config.drainMs)]);
        const { running } = main.connections;
        await close();
        return running;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function cut(server: Server | undefined): void {
  server?.close();
  server?.closeAllConnections();
}
