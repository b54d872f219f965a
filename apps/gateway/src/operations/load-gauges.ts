import type { ScrapedMetric } from './store-metrics.ts';

/** Current load of a gateway. */
export interface Load {
  readonly idempotency: { readonly held: number; readonly pending: number };
  readonly upstreams: { readonly connectionsInUse: number; readonly waiting: number };
  readonly connections: { readonly open: number; readonly running: number };
  readonly buffers: { readonly bytes: number };
}

/** Shows how much of everything that is bounded a gateway uses. */
export function loadGauges({ idempotency, upstreams, connections, buffers }: Load): ScrapedMetric[] {
  const gauge = (name: string, help: string, value: () => number): ScrapedMetric => ({
    type: 'gauge',
    name,
    help,
    value,
  });
  return [
    gauge('idempotency_in_flight', 'Claims held by this process', () => idempotency.held),
    gauge(
      'idempotency_background',
      'Store commands that are retried until the store acknowledges them',
      () => idempotency.pending,
    ),
    gauge(
      'upstream_connections_in_use',
      'Connections to upstreams that a request uses',
      () => upstreams.connectionsInUse,
    ),
    gauge('upstream_waiting', 'Requests that wait for a connection to their upstream', () => upstreams.waiting),
    gauge('connections', 'Connections of clients that are open', () => connections.open),
    gauge(
      'requests_running',
      'Requests that run, or wait for their turn on their connection',
      () => connections.running,
    ),
    gauge('buffered_bytes', 'Bytes of bodies and answers that are buffered', () => buffers.bytes),
  ];
}
