// The gRPC load of the topic doors: calls of Envoy's rate limit service, made from the published API of Envoy.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { answerWith } from 'headgate-bench/member';
import { ACCOUNTS, DESCRIPTOR, DOMAIN, REQUESTS } from './gateway-settings.mjs';

/** Envoy opens about one connection per worker thread. */
const CHANNELS = 4;
const DEPS = join(dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json')), 'deps');
const api = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: ['envoy-api', 'googleapis', 'protoc-gen-validate', 'xds'].map((folder) => join(DEPS, folder)),
  longs: Number,
  enums: String,
});
const { RateLimitService } = loadPackageDefinition(api).envoy.service.ratelimit.v3;
const [{ key }] = DESCRIPTOR.entries;
let count = 0;

function call(client) {
  const value = ACCOUNTS[count++ % ACCOUNTS.length];
  const request = { domain: DOMAIN, descriptors: [{ entries: [{ key, value }] }] };
  return new Promise((resolve, reject) => {
    client.ShouldRateLimit(request, (error, answer) => {
      if (error !== null) reject(error);
      else if (answer.overallCode !== 'OK') reject(new Error(`unexpected answer: ${answer.overallCode}`));
      else resolve();
    });
  });
}

async function callUntil(end, client, times) {
  for (let began = performance.now(); began < end; began = performance.now()) {
    await call(client);
    times.push(performance.now() - began);
  }
}

answerWith(async ({ port, seconds }) => {
  // Without the option, clients of one address share one connection.
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  const clients = Array.from(
    { length: CHANNELS },
    () => new RateLimitService(`127.0.0.1:${port}`, credentials.createInsecure(), options),
  );
  const times = [];
  const began = performance.now();
  const end = began + seconds * 1_000;
  const { connections } = REQUESTS.small;
  await Promise.all(Array.from({ length: connections }, (_, i) => callUntil(end, clients[i % CHANNELS], times)));
  const took = (performance.now() - began) / 1_000;
  for (const client of clients) client.close();
  times.sort((a, b) => a - b);
  const percentile = (share) => Math.round(times[Math.ceil(times.length * share) - 1] * 1_000);
  return { requests: times.length, seconds: took, p50Micros: percentile(0.5), p99Micros: percentile(0.99) };
});
