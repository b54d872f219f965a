import { createAgenda } from './agenda.mjs';
import { createAllowance } from './allowance.mjs';
import { createDenials } from './denials.mjs';
import { createGateway } from './gateway.mjs';
import { createLatencies } from './latencies.mjs';
import { createPopulation, shardOf } from './population.mjs';
import { createRandom } from './random.mjs';
import { createShard } from './shard.mjs';

/** Of the decisions, in whose time the queues fill; they are not looked at. */
const WARM_UP = 0.05;

/**
 * A slice of a fleet's life in virtual time: requests of accounts come to gateways, which ask the shards. Times are microseconds. The same settings give
 * the same figures anywhere.
 * @param settings
 *   `seed`; `accounts`, `exponent`, `perSecond`, `hotShare`: see population.mjs; `burst`: requests of an account that come at one instant, in the mean, each to a gateway by chance;
 *   `gateways`, `shards`: how many; `decisions`: how many requests are simulated; `window`: `{ max, micros }`; `denialMicros`: how long a rejection is remembered;
 *   `cpu`: see gateway.mjs; `serviceOf(records)`: see shard.mjs; `oneWay(random)`: of the network;
 *   `inFlight`: where given, requests don't come by chance, but each follows a decision, so many at a time
 */
export function simulate(settings) {
  const { seed, perSecond, decisions, inFlight, gateways: gatewayCount, shards: shardCount, oneWay } = settings;
  const random = createRandom(seed);
  const agenda = createAgenda();
  const population = createPopulation({ ...settings, random });
  const burst = () => random.geometric(settings.burst ?? 1);
  const gapOf = (account) => (settings.burst ?? 1) / population.rateOf(account);
  const allowance = createAllowance({ window: settings.window, gapOf, burst, random });
  const shards = Array.from({ length: shardCount }, () =>
    createShard({
      agenda,
      serviceOf: settings.serviceOf,
      decide,
      answer: (calls, now) => agenda.add(now + oneWay(random), (heard) => calls[0].gateway.hear(calls, heard)),
    }),
  );
  const latencies = createLatencies();
  const seen = { decisions: 0, accepted: 0, local: 0 };
  const skipped = Math.floor(decisions * WARM_UP);
  let asked = 0;
  let lastAskedAt = 0;
  let endedAt = 0;

  const gateways = Array.from({ length: gatewayCount }, () =>
    createGateway({
      agenda,
      cpu: settings.cpu,
      isCluster: shardCount > 1,
      denials: createDenials({
        maxMicros: settings.denialMicros,
        allowance,
        // What comes together goes to gateways by chance: each hears of requests, not of bursts.
        gapOf: (account) => gatewayCount / population.rateOf(account),
        random,
      }),
      send,
      decided,
    }),
  );

  function ask(now, account = population.draw()) {
    lastAskedAt = now;
    const request = { account, askedAt: now, place: asked++ };
    gateways[random.below(gatewayCount)].ask(request, now);
  }

  function send(call, now) {
    const shard = shards[shardOf(call.checks[0].account, shardCount)];
    agenda.add(now + oneWay(random), (arrived) => shard.receive(call, arrived));
  }

  function decide({ checks }, now) {
    for (const check of checks) check.refusedUntil = check.requests.map(() => allowance.take(check.account, now));
  }

  function decided({ request, time, isLocal, isAccepted }) {
    seen.decisions++;
    if (isAccepted) seen.accepted++;
    if (isLocal) seen.local++;
    if (request.place >= skipped) latencies.add(time - request.askedAt);
    endedAt = time;
    if (inFlight !== undefined && asked < decisions) ask(time);
  }

  function arrive(now) {
    const account = population.draw();
    for (let left = burst(); left > 0; left--) ask(now, account);
    if (asked < decisions) agenda.add(now + random.exponential(((settings.burst ?? 1) / perSecond) * 1e6), arrive);
  }

  if (inFlight === undefined) arrive(0);
  else for (let i = 0; i < inFlight; i++) ask(0);
  while (agenda.next < Number.POSITIVE_INFINITY) agenda.run();

  const served = shards.map(({ done }) => done);
  return { ...seen, askedMicros: lastAskedAt, endedMicros: endedAt, shards: served, latency: latencies.summary() };
}
