import { createAgenda } from './agenda.mjs';
import { createAllowance } from './allowance.mjs';
import { createDenials } from './denials.mjs';
import { createGateway } from './gateway.mjs';
import { createLatencies } from './latencies.mjs';
import { createPopulation, shardOf } from './population.mjs';
import { createRandom } from './random.mjs';
import { createShard } from './shard.mjs';

/** Share of the decisions that does not count, because the queues are still filling. */
const WARM_UP = 0.05;

/**
 * A slice of a fleet's life in virtual time: requests of accounts arrive at gateways, which call the shards. Times are
 * in microseconds. The same settings give the same figures on every machine.
 * @param settings
 *   - `seed`;
 *   - `accounts`, `exponent`, `perSecond`, `hotShare`: see population.mjs;
 *   - `burst`: mean number of requests of an account that arrive at one instant, each at a random gateway;
 *   - `gateways`, `shards`: how many;
 *   - `decisions`: how many requests are simulated;
 *   - `window`: `{ max, micros }`;
 *   - `denialMicros`: how long a gateway remembers a rejection;
 *   - `cpu`: see gateway.mjs;
 *   - `serviceOf(records)`: see shard.mjs;
 *   - `oneWay(random)`: delay of the network;
 *   - `inFlight`: if given, that many requests are in flight, and each next request follows a decision. If not,
 *     requests arrive at random times.
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
      answer: (calls, now) => agenda.add(now + oneWay(random), (arrived) => calls[0].gateway.receive(calls, arrived)),
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
        // The requests of a burst go to random gateways, so a gateway sees single requests and not bursts.
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
    for (const check of checks) check.rejectedUntil = check.requests.map(() => allowance.take(check.account, now));
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
