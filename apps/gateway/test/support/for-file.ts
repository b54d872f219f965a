import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeEach } from 'vitest';
import { type Config, type Gateway, startGateway } from './gateway.ts';
import { keyedConfig } from './keyed.ts';
import { type StoreServer, storeServerForFile } from './store-server.ts';

/**
 * Starts an upstream and a gateway process in front of it for the tests of a file. Await it at the top of the file.
 * Before each test the upstream is as at its start.
 * @param configFor makes the config from the URL of the upstream and from `rest`, such as `configOf`
 */
export async function gatewayForFile(
  configFor: (upstream: string, rest?: Config) => Config,
  rest?: Config,
): Promise<{ readonly upstream: Upstream; readonly gateway: Gateway }> {
  const upstream = await startUpstream();
  const gateway = await startGateway(configFor(upstream.url, rest));
  afterAll(() => gateway.stop());
  beforeEach(() => upstream.reset());
  return { upstream, gateway };
}

/** Several gateways on one store, in front of one upstream. */
export interface SharedStore {
  readonly server: StoreServer;
  /** `store` of the config. */
  readonly store: unknown;
  readonly upstream: Upstream;
  /** A gateway that lives as long as the file. */
  readonly survivor: Gateway;
  /** Starts another gateway with the same config, which the test ends. */
  start(): Promise<Gateway>;
}

/**
 * Starts the store, an upstream and a gateway for the tests of a file. Await it at the top of the file. Before each test the
 * upstream is as at its start.
 */
export async function sharedStoreForFile(leaseMs: number): Promise<SharedStore> {
  const server = await storeServerForFile();
  const store = server.store();
  const rest = { store, storeDeadlineMs: 2_000, idempotency: { leaseMs } };
  const { upstream, gateway } = await gatewayForFile(keyedConfig, rest);
  return { server, store, upstream, survivor: gateway, start: () => startGateway(keyedConfig(upstream.url, rest)) };
}
