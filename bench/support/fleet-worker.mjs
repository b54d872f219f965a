// One fleet in virtual time: processes that decide about the same accounts, by one rule. The limiter, the leases and the
// store are headgate's own, in memory, behind a network of a fixed delay.

import { createLimiter } from 'headgate';
import { createLeases } from 'headgate/limits';
import { createMemoryStore } from 'headgate/memory';
import { createRandom } from '../model/random.mjs';
import { createZipf } from '../model/zipf.mjs';
import { at, now, pass } from './virtual-time.mjs';

const settings = JSON.parse(process.argv[2]);
const { rule, processes, accounts, exponent, perSecond, seconds, limits, homeShare = 0, seed } = settings;
/** One way to the store. A trip is twice as long. */
const ONE_WAY_MS = 0.25;
/** A process repeats a rejection of the store for so long by itself, as headgate's stores do (S20). */
const DENIED_MS = 1_000;
/** How often processes tell each other what they admitted, by the rule `later`. */
const TELL_MS = 500;
const ROOM = 16_000_000;
const MOST_SHARED = 32;

const random = createRandom(seed);
const rankOf = exponent === 0 ? () => random.below(accounts) : createZipf({ count: accounts, exponent, random });
let trips = 0;
let commands = 0;
/** Whether timers run, and no requests come. */
let isTimersTurn = true;

/** Store, network and cache of rejections of one process. */
function remote(memory) {
  const denied = new Map();
  const shared = { lease: { at: -1, count: 0 }, settle: { at: -1, count: 0 } };
  /** What timers send in one turn goes together, up to 32 in a call, as the store in Redis does it. */
  const shares = (kind) => {
    const call = shared[kind];
    if (call.at === now() && ++call.count % MOST_SHARED !== 0) return true;
    if (call.at !== now()) Object.assign(call, { at: now(), count: 0 });
    return false;
  };
  const trip = (work, isShared = false) => {
    commands++;
    if (!isShared) trips++;
    return new Promise((resolve) => {
      at(now() + ONE_WAY_MS, () => {
        const result = work();
        at(now() + ONE_WAY_MS, () => resolve(result));
      });
    });
  };
  /** @returns a rejection that is remembered, or a promise of a new decision */
  const ask = (account, work, decisionOf, isShared = () => false) => {
    const known = denied.get(account);
    if (known !== undefined && now() < known.until) return known.decision;
    denied.delete(account);
    return trip(work, isShared()).then((result) => {
      const decision = decisionOf(result);
      if (!decision.accepted)
        denied.set(account, { decision, until: now() + Math.min(DENIED_MS, decision.shown?.resetMs ?? DENIED_MS) });
      return result;
    });
  };
  return {
    synchronous: false,
    consume: (account, ...rest) =>
      ask(
        account,
        () => memory.consume(account, ...rest),
        (decision) => decision,
      ),
    lease(account, ...rest) {
      const asked = ask(
        account,
        () => memory.lease(account, ...rest),
        ({ decision }) => decision,
        () => isTimersTurn && shares('lease'),
      );
      return asked instanceof Promise ? asked : { decision: asked, granted: 0 };
    },
    peek: (...args) => trip(() => memory.peek(...args)),
    settle: (...args) => trip(() => memory.settle(...args)),
    reset: (...args) => trip(() => memory.reset(...args)),
    settleOnce: (...args) => trip(() => memory.settleOnce(...args), shares('settle')),
  };
}

const admitted = new Map();
const admit = (account) => admitted.set(account, (admitted.get(account) ?? 0) + 1);
const asksLimiter = (limiter) => (account) => {
  limiter.consume({ account }).then(({ accepted }) => accepted && admit(account));
};

/** Each returns what one process does with a request of an account. */
const RULES = {
  /** One trip for each decision. */
  each(memory) {
    return () => asksLimiter(createLimiter({ store: remote(memory), limits, validate: false }));
  },
  leases(memory) {
    return () => asksLimiter(createLimiter({ store: remote(memory), limits, validate: false, leases: createLeases() }));
  },
  /** Each process has an equal part of every limit, and asks nobody. */
  parts() {
    const parts = limits.map((text) => {
      const [max, duration] = text.split('/');
      return `${Math.floor(Number(max) / processes)}/${duration}`;
    });
    return () => {
      const limiter = createLimiter({ store: createMemoryStore({ maxKeys: ROOM }), limits: parts, validate: false });
      return (account) => limiter.consumeSync({ account }).accepted && admit(account);
    };
  },
  /** Each process counts by itself, and tells all others later. No window ends in the time that is simulated. */
  later() {
    const max = Math.min(...limits.map((text) => Number(text.split('/')[0])));
    const told = new Map();
    const untold = [];
    const tell = () => {
      for (const own of untold) {
        if (own.size > 0) trips++;
        for (const [account, count] of own) told.set(account, (told.get(account) ?? 0) + count);
        own.clear();
      }
      at(now() + TELL_MS, tell);
    };
    at(TELL_MS, tell);
    return () => {
      const own = new Map();
      untold.push(own);
      return (account) => {
        const count = own.get(account) ?? 0;
        if ((told.get(account) ?? 0) + count >= max) return;
        own.set(account, count + 1);
        admit(account);
      };
    };
  },
};

const create = RULES[rule](createMemoryStore({ maxKeys: ROOM }));
const deciders = Array.from({ length: processes }, create);
/** The same requests, in the same order, decided one after the other in one place. */
const exact = createLimiter({ store: createMemoryStore({ maxKeys: ROOM }), limits, validate: false });
let exactly = 0;
const most = new Map();
let decisions = 0;
let next = random.exponential(1_000 / perSecond);
await pass(seconds * 1_000, (endMs) => {
  isTimersTurn = false;
  for (; next < endMs; next += random.exponential(1_000 / perSecond)) {
    const rank = rankOf();
    const account = `account_${rank}`;
    const isAtHome = homeShare > 0 && random.uniform() < homeShare;
    decisions++;
    deciders[isAtHome ? rank % processes : random.below(processes)](account);
    if (!exact.consumeSync({ account }).accepted) continue;
    exactly++;
    most.set(account, (most.get(account) ?? 0) + 1);
  }
  isTimersTurn = true;
});
// What is on its way arrives.
await pass(seconds * 1_000 + 100, () => {});
let over = 0;
let missed = 0;
for (const account of new Set([...most.keys(), ...admitted.keys()])) {
  const difference = (admitted.get(account) ?? 0) - (most.get(account) ?? 0);
  if (difference > 0) over += difference;
  else missed -= difference;
}
process.stdout.write(JSON.stringify({ decisions, exactly, trips, commands, over, missed }));
process.exit();
