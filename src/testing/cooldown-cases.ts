import type { CooldownCommand, CooldownReply, StartCooldown } from '../core/cooldown.ts';
import type { LimitStore } from '../core/ports.ts';
import { assertEqual } from './assert-equal.ts';
import { type LimitCases, remainingOf, windowSet } from './limit-cases.ts';

const TARGET = { account: 'a', route: 'r' };
const MINUTE = 60_000;
const STEPS = 150;

function start(forMs?: number, isProbe = false): CooldownCommand {
  return { kind: 'start', forMs, defaultMs: 1_000, maxMs: 3_600_000, isProbe };
}

/** What a naive reader of S30 remembers about one target. */
class NaiveCooldown {
  #blockEnds = 0;
  #isProviders = false;
  #refusals = 0;
  #probeEnds = 0;
  #forgottenAt = 0;

  run(command: CooldownCommand, now: number): CooldownReply {
    const isBlocked = now < this.#blockEnds;
    const isKnown = now < this.#forgottenAt;
    if (!isKnown) [this.#refusals, this.#probeEnds] = [0, 0];
    if (command.kind === 'start') return this.#start(command, isBlocked, now);
    if (!isKnown) return { state: 'open', forMs: 0 };
    if (command.kind === 'end') {
      this.#forgottenAt = 0;
      if (this.#isProviders) this.#blockEnds = 0;
      return { state: 'open', forMs: 0 };
    }
    if (isBlocked) return { state: 'blocked', forMs: 0 };
    if (this.#probeEnds > 0 && now >= this.#probeEnds) {
      this.#forgottenAt = 0;
      return { state: 'open', forMs: 0 };
    }
    this.#block(now + 1_000, true);
    if (now < this.#probeEnds) return { state: 'blocked', forMs: 0 };
    this.#probeEnds = now + 10_000;
    this.#forgottenAt = now + 10_000 + MINUTE;
    return { state: 'probe', forMs: 0 };
  }

  #start({ forMs, defaultMs, maxMs, isProbe }: StartCooldown, isBlocked: boolean, now: number): CooldownReply {
    if (isBlocked && !(isProbe && this.#isProviders)) return { state: 'blocked', forMs: 0 };
    let pauseMs = forMs ?? defaultMs;
    if (forMs === undefined) for (let i = 0; i < this.#refusals; i++) pauseMs = Math.min(MINUTE, pauseMs * 2);
    if (pauseMs > maxMs) pauseMs = maxMs;
    this.#refusals++;
    this.#probeEnds = 0;
    this.#forgottenAt = now + pauseMs + MINUTE;
    this.#block(now + pauseMs, true);
    return { state: 'started', forMs: pauseMs };
  }

  /** An operator blocks, or with 0 lifts the block. */
  operate(until: number): void {
    this.#block(until, false);
  }

  isBlocked(now: number): boolean {
    return now < this.#blockEnds;
  }

  #block(ends: number, isProviders: boolean): void {
    this.#blockEnds = ends;
    this.#isProviders = isProviders;
  }
}

/** Tests of cooldowns, which are optional, by their names. */
export const COOLDOWN_CASES: LimitCases = {
  async 'S30: a refusal blocks its target until then, later ones never extend it, and one request tries afterwards'(
    store,
    clock,
  ) {
    const { cooldown } = boundTo(store);
    if (cooldown === undefined) return;
    const minute = windowSet(['5/1m'], ['9/1d'], 'account');
    const accepts = async (route = 'r'): Promise<boolean> => (await store.consume('a', route, minute, 1)).accepted;
    assertEqual(await cooldown(TARGET, { kind: 'probe' }), { state: 'open', forMs: 0 });
    assertEqual(await cooldown(TARGET, { kind: 'end' }), { state: 'open', forMs: 0 });
    assertEqual(await cooldown(TARGET, start(3_000)), { state: 'started', forMs: 3_000 });
    const { blocked, shown } = await store.consume('a', 'r', minute, 1);
    assertEqual({ blocked, shown }, { blocked: { forMs: 3_000, reason: 'provider' }, shown: undefined });
    clock.advance(1_000);
    assertEqual(
      await Promise.all(Array.from({ length: 5 }, () => cooldown(TARGET, start(3_000)))),
      Array(5).fill({ state: 'blocked', forMs: 0 }),
    );
    assertEqual(await store.blocked?.(TARGET), { forMs: 2_000, reason: 'provider' });
    clock.advance(1_999);
    assertEqual([await accepts(), await accepts('s')], [false, true]);
    clock.advance(1);
    const tried = await Promise.all(Array.from({ length: 5 }, () => cooldown(TARGET, { kind: 'probe' })));
    assertEqual(tried.map(({ state }) => state).sort(), ['blocked', 'blocked', 'blocked', 'blocked', 'probe']);
    assertEqual([await accepts(), await remainingOf(store, minute)], [false, [5, 8]]);
    // While the request tries, the others are blocked again and again.
    clock.advance(1_000);
    assertEqual(await accepts(), true);
    assertEqual((await cooldown(TARGET, { kind: 'probe' })).state, 'blocked');
    assertEqual(await accepts(), false);
    await cooldown(TARGET, { kind: 'end' });
    assertEqual([await accepts(), (await cooldown(TARGET, { kind: 'probe' })).state], [true, 'open']);
  },

  async "S30: a cooldown neither shortens nor lifts somebody else's block, and a reset does not lift it"(store, clock) {
    const { cooldown } = boundTo(store);
    if (cooldown === undefined || store.block === undefined) return;
    await store.block(TARGET, { forMs: 5_000, reason: 'fraud' });
    assertEqual((await cooldown(TARGET, start(1_000, true))).state, 'blocked');
    assertEqual((await cooldown({ account: 'a' }, start(9_000))).state, 'started');
    await store.reset({ account: 'a' });
    assertEqual(await store.blocked?.(TARGET), { forMs: 9_000, reason: 'provider' });
    clock.advance(9_000);
    assertEqual((await cooldown({ account: 'a' }, { kind: 'probe' })).state, 'probe');
    await store.block({ account: 'a' }, { forMs: 7_000, reason: 'fraud' });
    assertEqual((await cooldown({ account: 'a' }, { kind: 'end' })).state, 'open');
    assertEqual(await store.blocked?.(TARGET), { forMs: 7_000, reason: 'fraud' });
  },

  async 'S30: each refusal in a row doubles the pause up to a minute, and an accepted request begins anew'(
    store,
    clock,
  ) {
    const { cooldown } = boundTo(store);
    if (cooldown === undefined) return;
    const lengths: number[] = [];
    for (let i = 0; i < 8; i++) {
      const { forMs } = await cooldown(TARGET, start(undefined, i > 0));
      lengths.push(forMs);
      clock.advance(forMs);
      assertEqual((await cooldown(TARGET, { kind: 'probe' })).state, 'probe');
    }
    assertEqual(lengths, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    await cooldown(TARGET, { kind: 'end' });
    assertEqual(await cooldown(TARGET, start()), { state: 'started', forMs: 1_000 });
    assertEqual(await cooldown({ account: 'b' }, start(9_999_999_999)), { state: 'started', forMs: 3_600_000 });
    // So long after it, nothing is in a row.
    clock.advance(61_000);
    assertEqual(await cooldown(TARGET, start()), { state: 'started', forMs: 1_000 });
  },

  async 'S30: a random history of answers, attempts, blocks and time is what a naive reader of the rule expects'(
    store,
    clock,
  ) {
    const { cooldown } = boundTo(store);
    if (cooldown === undefined || store.block === undefined || store.unblock === undefined) return;
    const targets = [TARGET, { account: 'a' }, { account: 'a', route: 's' }];
    const naive = targets.map(() => new NaiveCooldown());
    let seed = clock.now() % 2_147_483_647;
    const pick = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let step = 0; step < STEPS; step++) {
      const at = pick(targets.length);
      const [target, model] = [targets[at] as { account: string }, naive[at] as NaiveCooldown];
      const choice = pick(10);
      if (choice === 0) {
        const forMs = 1 + pick(20_000);
        await store.block(target, { forMs, reason: 'other' });
        model.operate(clock.now() + forMs);
      } else if (choice === 1) {
        await store.unblock(target);
        model.operate(0);
      } else if (choice < 5) clock.advance(pick(pick(4) === 0 ? 90_000 : 3_000));
      else {
        const asked = pick(2) === 0 ? undefined : 1 + pick(5_000);
        const commands = [start(asked, pick(2) === 0), { kind: 'probe' }, { kind: 'probe' }, { kind: 'end' }] as const;
        const command = commands[pick(4)] as CooldownCommand;
        assertEqual(await cooldown(target, command), model.run(command, clock.now()), [`step ${step}`, 'the rule']);
      }
      const isBlocked = naive.some((one, i) => i !== 2 && one.isBlocked(clock.now()));
      assertEqual((await store.blocked?.(TARGET)) !== undefined, isBlocked, [`step ${step}: blocked`, 'the rule']);
    }
  },
};

function boundTo(store: LimitStore): { readonly cooldown: LimitStore['cooldown'] } {
  return { cooldown: store.cooldown?.bind(store) };
}
