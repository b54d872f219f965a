import { createFleet } from 'headgate-bench/fleet';

/** A process that calls Envoy's rate limit service. */
export async function startGrpcLoad() {
  const fleet = createFleet(new URL('doors-grpc-load.mjs', import.meta.url));
  await fleet.start('grpc', {});
  return {
    /** @returns `{ requests, seconds, p50Micros, p99Micros }` */
    load: (request) => fleet.ask('grpc', request),
    stop: () => fleet.stop(),
  };
}
