import { type ClaimWorld, resultOf } from './claim-world.ts';
import { equal } from './equal.ts';

/** A rule, and a story that a store which breaks it tells otherwise. */
export interface ClaimCase {
  readonly name: string;
  run(world: ClaimWorld): Promise<void>;
}

const LOST = { kind: 'lost' };
const OK = { kind: 'ok' };
const kindOf = async (reply: Promise<{ readonly kind: string }>): Promise<string> => (await reply).kind;

/**
 * Those with a name in capitals tell of a wrong variant of the protocol that a store could be; nearly all are variants of
 * `docs/claim.pml`, which spin refutes.
 */
export const CLAIM_CASES: readonly ClaimCase[] = [
  {
    name: 'W_NO_MARK: I9: a claim that was dispatched is not taken over',
    async run(world) {
      equal(await world.dispatch('a', await world.claim('a')), OK);
      world.lapse();
      equal(await kindOf(world.begin('b')), 'orphan');
    },
  },
  {
    name: 'W_LEASE_IS_TTL: I8, I9: a record outlives its lease',
    async run(world) {
      const generation = await world.claim('a');
      world.lapse();
      equal(await kindOf(world.begin('b', { fingerprint: 'g' })), 'mismatch');
      equal(await world.extend('a', generation), OK);
      world.lapse();
      equal(await world.claim('b'), generation + 1);
    },
  },
  {
    name: 'W_TAKEOVER_OF_DISPATCHED: I9: with reject an orphan stays one until its retention is over',
    async run(world) {
      const generation = await world.claim('a', { dispatch: true });
      world.lapse();
      for (const token of ['b', 'c', 'd']) equal(await world.begin(token), { kind: 'orphan' });
      equal((await world.inspect())?.owner, 'a');
      equal((await world.inspect())?.generation, generation);
      world.forget();
      equal(await kindOf(world.begin('b')), 'claimed');
    },
  },
  {
    name: 'W_ABANDON_WITHOUT_OWNER: I10: who has lost a claim cannot release it',
    async run(world) {
      const generation = await world.claim('a');
      world.lapse();
      await world.claim('b');
      equal(await world.abandon('a', generation), LOST);
      equal(await world.abandon('a'), LOST);
      equal(await kindOf(world.begin('c')), 'in_progress');
    },
  },
  {
    name: 'W_TOO_LARGE_IS_RELEASED: I7: an outcome without a value is an outcome',
    async run(world) {
      await world.claim('a', { dispatch: true });
      const result = { status: '200', value: undefined };
      equal(await world.complete('a', result), OK);
      equal(await world.begin('b'), { kind: 'settled', result });
    },
  },
  {
    name: 'W_DISPATCH_WITHOUT_CAS: I10: who has lost a claim cannot mark it',
    async run(world) {
      const generation = await world.claim('a');
      world.lapse();
      await world.claim('b');
      equal(await world.dispatch('a', generation), LOST);
      world.lapse();
      equal(await kindOf(world.begin('c')), 'claimed');
    },
  },
  {
    name: 'W_EXTEND_REVIVES: I10: who has lost a claim cannot renew it',
    async run(world) {
      const generation = await world.claim('a');
      world.lapse();
      const taken = await world.claim('b');
      equal(await world.extend('a', generation), LOST);
      equal(await world.dispatch('b', taken), OK);
    },
  },
  {
    name: 'W_BEGIN_CLEARS_MARK: I9: a begin that comes again leaves the mark',
    async run(world) {
      const generation = await world.claim('a');
      await world.dispatch('a', generation);
      equal(await world.begin('a'), { kind: 'claimed', generation, inherited: false, dispatched: true });
      world.lapse();
      equal(await kindOf(world.begin('b')), 'orphan');
    },
  },
  {
    name: 'W_BEGIN_SETS_MARK: I9: a begin that comes again sets none',
    async run(world) {
      const generation = await world.claim('a');
      const again = await world.begin('a', { dispatch: true });
      equal(again, { kind: 'claimed', generation, inherited: false, dispatched: false });
      world.lapse();
      equal(await kindOf(world.begin('b')), 'claimed');
    },
  },
  {
    name: 'W_NO_GENERATION: I10: a late dispatch of an earlier claim of the same attempt marks nothing',
    async run(world) {
      const generation = await world.claim('a');
      equal(await world.abandon('a', generation), { kind: 'released' });
      equal(await world.claim('a'), generation + 1);
      equal(await world.dispatch('a', generation), LOST);
      equal(await world.extend('a', generation), LOST);
      equal(await world.abandon('a', generation), LOST);
      world.lapse();
      equal(await kindOf(world.begin('b')), 'claimed');
    },
  },
  {
    name: 'W_BEGIN_NOT_IDEMPOTENT: I9: nobody is refused because of its own claim',
    async run(world) {
      const generation = await world.claim('a');
      equal(await world.claim('a'), generation);
    },
  },
  {
    name: 'W_NO_LEASE: I9: a claim whose owner is gone is taken over as its lease ends, and not before',
    async run(world) {
      const generation = await world.claim('a');
      world.clock.advance(999);
      equal(await world.begin('b'), { kind: 'in_progress', remainingMs: 1 });
      world.clock.advance(1);
      equal(await world.begin('b'), {
        kind: 'claimed',
        generation: generation + 1,
        inherited: false,
        dispatched: false,
      });
    },
  },
  {
    name: 'W_COMPLETE_NEEDS_LEASE: I10: an outcome is kept, whoever has the claim by now',
    async run(world) {
      await world.claim('a', { dispatch: true });
      world.lapse();
      equal(await world.complete('a'), OK);
      equal(await world.begin('b'), { kind: 'settled', result: resultOf('a') });
    },
  },
  {
    name: 'W_COMPLETE_NEEDS_OWNER: I10: an earlier owner turns an open claim into its outcome',
    async run(world) {
      await world.claim('a');
      world.lapse();
      const generation = await world.claim('b');
      equal(await world.complete('a'), OK);
      for (const reply of [
        world.dispatch('b', generation),
        world.extend('b', generation),
        world.abandon('b', generation),
      ]) {
        equal(await reply, { kind: 'settled', result: resultOf('a') });
      }
    },
  },
  {
    name: 'FUSED without DEADLINE: I9: a begin that comes past its deadline does nothing',
    async run(world) {
      const deadline = world.clock.now();
      equal(
        await kindOf(world.begin('a', { dispatch: true, deadline, id: { scope: 'app', key: 'in time' } })),
        'claimed',
      );
      world.clock.advance(1);
      equal(await world.begin('a', { dispatch: true, deadline }), { kind: 'late' });
      equal(await world.inspect(), undefined);
    },
  },
  {
    name: 'W_COMPLETE_OVERWRITES: I10: the first outcome wins, and the loser is told',
    async run(world) {
      await world.claim('a', { dispatch: true });
      world.lapse();
      await world.claim('b', { onOrphan: 'reexecute' });
      equal(await world.complete('b'), OK);
      equal(await world.complete('a'), { kind: 'superseded', result: resultOf('b') });
      equal(await world.complete('b', resultOf('again')), OK);
      equal(await world.begin('c'), { kind: 'settled', result: resultOf('b') });
    },
  },
  {
    name: 'W_COMPLETED_SKIPS_FINGERPRINT: I2: a result is shown to no other request',
    async run(world) {
      const generation = await world.claim('a', { dispatch: true });
      await world.complete('a');
      equal(await world.begin('b', { fingerprint: 'g' }), { kind: 'mismatch', fingerprint: 'f' });
      for (const reply of [
        world.extend('a', generation, 'g'),
        world.dispatch('a', generation, 'g'),
        world.complete('a', resultOf('a'), 'g'),
        world.abandon('a', generation, 'g'),
      ]) {
        equal(await reply, LOST);
      }
    },
  },
  {
    name: 'W_FREE_FORGETS_FINGERPRINT: I6: a released key keeps its fingerprint',
    async run(world) {
      await world.abandon('a', await world.claim('a'));
      equal(await world.begin('b', { fingerprint: 'g' }), { kind: 'mismatch', fingerprint: 'f' });
      equal(await kindOf(world.begin('b')), 'claimed');
    },
  },
  {
    name: 'W_COMPLETE_WITHOUT_FINGERPRINT: I2, I10: after a loss, a late outcome is not handed to another request',
    async run(world) {
      await world.claim('a', { dispatch: true });
      // The store has lost the record: to this one, its retention is over.
      world.forget();
      await world.claim('b', { fingerprint: 'g' });
      equal(await world.complete('a'), LOST);
      equal(await kindOf(world.begin('c', { fingerprint: 'g' })), 'in_progress');
    },
  },
  {
    name: 'W_COMPLETE_NEEDS_RECORD: I6: an outcome is kept though its record was lost',
    async run(world) {
      equal(await world.complete('a'), OK);
      equal(await world.begin('b'), { kind: 'settled', result: resultOf('a') });
    },
  },
  {
    name: 'W_TAKEOVER_CLEARS_MARK: I9: a takeover of an orphan stays marked until its owner dispatches',
    async run(world) {
      await world.claim('a', { dispatch: true });
      world.lapse();
      const generation = await world.claim('b', { onOrphan: 'reconcile' });
      const inherited = { kind: 'claimed', generation, inherited: true, dispatched: false };
      equal(await world.begin('b', { onOrphan: 'reconcile' }), inherited);
      world.lapse();
      equal(await world.begin('c'), { kind: 'orphan' });
      const third = { ...inherited, generation: generation + 1 };
      equal(await world.begin('c', { onOrphan: 'reconcile', dispatch: true }), third);
      equal(await world.dispatch('c', generation + 1), OK);
      equal((await world.inspect())?.inherited, false);
    },
  },
  {
    name: 'W_ABANDON_FREES_INHERITED: I9: the release of such a takeover makes it an orphan again, at once',
    async run(world) {
      await world.claim('a', { dispatch: true });
      world.lapse();
      equal(await world.abandon('b', await world.claim('b', { onOrphan: 'reconcile' })), { kind: 'released' });
      equal(await world.begin('c'), { kind: 'orphan' });
      equal((await world.begin('c', { onOrphan: 'reconcile' })).kind, 'claimed');
    },
  },
  {
    name: 'RECREATE: I10: a renewal claims nothing',
    async run(world) {
      equal(await world.extend('a', 1), LOST);
      equal(await world.dispatch('a', 1), LOST);
      equal(await world.abandon('a'), LOST);
      equal(await world.inspect(), undefined);
    },
  },
  {
    name: 'I6: a dispatched claim whose effect is known not to have happened is released by its owner',
    async run(world) {
      equal(await world.abandon('a', await world.claim('a', { dispatch: true })), { kind: 'released' });
      equal((await world.begin('b')).kind, 'claimed');
      world.lapse();
      equal((await world.begin('c')).kind, 'claimed');
    },
  },
  {
    name: 'I8: a result is kept for its retention, to the millisecond',
    async run(world) {
      await world.claim('a', { dispatch: true });
      await world.complete('a');
      world.clock.advance(99_999);
      equal((await world.begin('b')).kind, 'settled');
      world.clock.advance(1);
      equal(await world.inspect(), undefined);
      equal(await world.claim('b', { fingerprint: 'g' }), 1);
    },
  },
];
