/** I9 to I12 together: two gateways and a Redis that are frozen, killed and started again while clients retry. The upstream counts the effects. */

import { openRaw, pause, type Reply } from 'headgate-testbed/raw-http';
import { type Behaviour, startUpstream } from 'headgate-testbed/upstream';
import { expect, it, onTestFinished } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callsOf, freshKey, keyedConfig, OPEN, post, rawPost } from '../support/keyed.ts';
import { type StoreServer, startStoreServer } from '../support/store-server.ts';

const AGAIN = '/api/v1/again';
const CHAOS_MS = 6_000;
const LEASE_MS = 600;
/** Time after the chaos, for the last lease and for commands that are still retried in the background. */
const PATIENCE_MS = 20_000;
/** Answers that say that the outcome is unknown, or not known yet. */
const UNSETTLED = /errors\/(conflict|service_unavailable|already_used)|provider\/too_many_requests/;

const chance = (share: number): boolean => Math.random() < share;
const upTo = (ms: number): Promise<void> => pause(Math.random() * ms);

/** Effects by key. An answer of 429 does not count as an effect. */
function moody(effects: Map<string, number>): Behaviour {
  return async (seen, response) => {
    await seen.whole;
    const key = String(seen.headers['x-test-key']);
    if (chance(0.15)) {
      response.writeHead(429).end('not now');
      return;
    }
    const effect = (effects.get(key) ?? 0) + 1;
    effects.set(key, effect);
    if (chance(0.4)) await upTo(1_200);
    if (chance(0.08)) {
      response.socket?.destroy();
      return;
    }
    response.writeHead(chance(0.3) ? 500 : 200, { 'content-type': 'text/plain' });
    response.write(`effect ${effect} `);
    if (chance(0.06)) response.destroy();
    else response.end(String(Math.random()));
  };
}

/** Asks until the same outcome was received three times after the chaos. All outcomes that are received must be equal. */
async function client(key: string, path: string, gateways: readonly Gateway[], until: number): Promise<Set<string>> {
  const outcomes = new Set<string>();
  for (let heard = 0; heard < 3 && performance.now() < until + PATIENCE_MS; ) {
    const gateway = gateways[chance(0.5) ? 0 : 1] as Gateway;
    if (chance(0.1)) {
      const impatient = await openRaw(gateway.port).catch(() => undefined);
      impatient?.write(rawPost(key, path));
      await upTo(100);
      impatient?.destroy();
    }
    const reply = await post(gateway, key, { path }).catch(() => undefined);
    await upTo(200);
    if (reply === undefined || reply.broken) continue;
    if (isOutcome(reply)) outcomes.add(`${reply.status} ${reply.text}`);
    if (performance.now() > until && (isOutcome(reply) || /already_used|unknown/.test(reply.text))) heard += 1;
  }
  return outcomes;
}

/** A 503 or 504 of the gateway is an outcome only if it is replayed. Before that, possibly nothing was sent, or the answer comes late. */
function isOutcome({ text, headers }: Reply): boolean {
  if (UNSETTLED.test(text)) return false;
  return headers['idempotency-replayed'] !== undefined || !/errors\/(network_down|request_timeout)/.test(text);
}

async function misfortunes(server: StoreServer, gateways: Gateway[], start: () => Promise<Gateway>, until: number) {
  const unlucky = () => (chance(0.5) ? 0 : 1);
  const all = [
    async () => {
      server.freeze();
      await upTo(1_000);
      server.thaw();
    },
    async () => {
      await server.kill();
      await upTo(500);
      await server.restart();
    },
    async () => {
      const i = unlucky();
      gateways[i]?.signal('SIGKILL');
      await gateways[i]?.exited;
      gateways[i] = await start();
    },
    async () => {
      const gateway = gateways[unlucky()];
      gateway?.signal('SIGSTOP');
      await upTo(2 * LEASE_MS);
      gateway?.signal('SIGCONT');
    },
  ];
  for (let i = Math.floor(Math.random() * all.length); performance.now() < until; i += 1) {
    await upTo(500);
    await all[i % all.length]?.();
  }
}

it('reject: never a second effect; reexecute: perhaps; in both every retry gets the same outcome', async () => {
  const server = await startStoreServer();
  onTestFinished(() => server.stop());
  const effects = new Map<string, number>();
  const upstream = await startUpstream(moody(effects));
  const start = () =>
    startGateway(
      keyedConfig(upstream.url, {
        store: server.store(),
        storeDeadlineMs: 200,
        upstreamTimeoutMs: 700,
        idempotency: { leaseMs: LEASE_MS, waitMs: 1_000, lateAnswerMs: 3_000 },
      }),
    );
  const gateways = [await start(), await start()];
  const keys = Array.from({ length: 60 }, freshKey);
  const pathOf = (key: string): string => (keys.indexOf(key) % 2 === 0 ? OPEN : AGAIN);
  const until = performance.now() + CHAOS_MS;
  const [outcomes] = await Promise.all([
    Promise.all(keys.map((key) => client(key, pathOf(key), gateways, until))),
    misfortunes(server, gateways, start, until),
  ]);
  for (const [i, key] of keys.entries()) {
    const calls = callsOf(upstream, key).length;
    expect([...(outcomes[i] ?? [])].length, `outcomes of ${key}, ${calls} calls`).toBeLessThanOrEqual(1);
    if (pathOf(key) === OPEN) expect(effects.get(key) ?? 0, `effects of ${key}`).toBeLessThanOrEqual(1);
  }
  expect(outcomes.filter(({ size }) => size === 1).length).toBeGreaterThan(keys.length / 2);
  for (const gateway of gateways) expect((await gateway.stop()).code).toBe(0);
});
