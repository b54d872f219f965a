import { assertEqual } from './assert-equal.ts';
import { type ClaimFixture, resultWith } from './claim-fixture.ts';

const LOST = { kind: 'lost' };
const OK = { kind: 'ok' };
const kindIn = async (reply: Promise<{ readonly kind: string }>): Promise<string> => (await reply).kind;

/**
 * Tests by their names. A store fails the test of a rule if it breaks the rule.
 *
 * A name in capitals is the name of a wrong variant of the protocol that a store could implement. Nearly all of them
 * are variants of `docs/claim.pml`, which the model checker spin refutes.
 */
export const CLAIM_CASES: Readonly<Record<string, (fixture: ClaimFixture) => Promise<void>>> = {
  async 'W_NO_MARK: I9: a dispatched claim is not taken over'(fixture) {
    assertEqual(await fixture.dispatch('a', await fixture.claim('a')), OK);
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('b')), 'orphan');
  },
  async 'W_LEASE_IS_TTL: I8, I9: a record outlives its lease'(fixture) {
    const generation = await fixture.claim('a');
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('b', { fingerprint: 'g' })), 'mismatch');
    assertEqual(await fixture.extend('a', generation), OK);
    fixture.expireLease();
    assertEqual(await fixture.claim('b'), generation + 1);
  },
  async 'W_TAKEOVER_OF_DISPATCHED: I9: with onOrphan reject, an orphan stays an orphan'(fixture) {
    const generation = await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    for (const token of ['b', 'c', 'd']) assertEqual(await fixture.begin(token), { kind: 'orphan' });
    assertEqual((await fixture.inspect())?.owner, 'a');
    assertEqual((await fixture.inspect())?.generation, generation);
  },
  async 'W_UNKNOWN_EXPIRES: I9: an unknown outcome stays after its retention, until it is resolved'(fixture) {
    await fixture.dispatch('a', await fixture.claim('a'));
    for (let round = 0; round < 3; round++) {
      fixture.expireRetention();
      assertEqual(await fixture.begin('b'), { kind: 'orphan' });
      assertEqual(await kindIn(fixture.begin('b', { fingerprint: 'g' })), 'mismatch');
    }
    assertEqual((await fixture.inspect())?.keptMs, 0);
    assertEqual(await fixture.complete('operator'), OK);
    assertEqual(await fixture.begin('b'), { kind: 'settled', result: resultWith('operator') });
    fixture.expireRetention();
    assertEqual(await fixture.inspect(), undefined);
  },
  async 'I9: an unknown outcome of an earlier owner stays after its retention, too'(fixture) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    await fixture.abandon('b', await fixture.claim('b', { onOrphan: 'reconcile' }));
    fixture.expireRetention();
    assertEqual(await fixture.begin('c'), { kind: 'orphan' });
    const generation = await fixture.claim('c', { onOrphan: 'reconcile' });
    fixture.expireRetention();
    assertEqual(await fixture.dispatch('c', generation), OK);
    assertEqual(await fixture.abandon('c', generation), { kind: 'released' });
    fixture.expireReleased();
    assertEqual(await fixture.inspect(), undefined);
  },
  async 'W_ABANDON_WITHOUT_OWNER: I10: an attempt that lost its claim cannot release it'(fixture) {
    const generation = await fixture.claim('a');
    fixture.expireLease();
    await fixture.claim('b');
    assertEqual(await fixture.abandon('a', generation), LOST);
    assertEqual(await fixture.abandon('a'), LOST);
    assertEqual(await kindIn(fixture.begin('c')), 'in_progress');
  },
  async 'W_TOO_LARGE_IS_RELEASED: I7: an outcome without a value is stored as an outcome'(fixture) {
    await fixture.claim('a', { dispatch: true });
    const result = { status: '200', value: undefined };
    assertEqual(await fixture.complete('a', result), OK);
    assertEqual(await fixture.begin('b'), { kind: 'settled', result });
  },
  async 'W_DISPATCH_WITHOUT_CAS: I10: an attempt that lost its claim cannot mark it as dispatched'(fixture) {
    const generation = await fixture.claim('a');
    fixture.expireLease();
    await fixture.claim('b');
    assertEqual(await fixture.dispatch('a', generation), LOST);
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('c')), 'claimed');
  },
  async 'W_EXTEND_REVIVES: I10: an attempt that lost its claim cannot renew it'(fixture) {
    const generation = await fixture.claim('a');
    fixture.expireLease();
    const takenOver = await fixture.claim('b');
    assertEqual(await fixture.extend('a', generation), LOST);
    assertEqual(await fixture.dispatch('b', takenOver), OK);
  },
  async 'W_BEGIN_CLEARS_MARK: I9: a repeated begin does not clear the mark of a dispatched claim'(fixture) {
    const generation = await fixture.claim('a');
    await fixture.dispatch('a', generation);
    assertEqual(await fixture.begin('a'), { kind: 'claimed', generation, inherited: false, dispatched: true });
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('b')), 'orphan');
  },
  async 'W_BEGIN_SETS_MARK: I9: a repeated begin does not mark the claim as dispatched'(fixture) {
    const generation = await fixture.claim('a');
    const again = await fixture.begin('a', { dispatch: true });
    assertEqual(again, { kind: 'claimed', generation, inherited: false, dispatched: false });
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('b')), 'claimed');
  },
  async 'W_NO_GENERATION: I10: a late dispatch of an earlier claim of the same attempt marks nothing'(fixture) {
    const generation = await fixture.claim('a');
    assertEqual(await fixture.abandon('a', generation), { kind: 'released' });
    assertEqual(await fixture.claim('a'), generation + 1);
    assertEqual(await fixture.dispatch('a', generation), LOST);
    assertEqual(await fixture.extend('a', generation), LOST);
    assertEqual(await fixture.abandon('a', generation), LOST);
    fixture.expireLease();
    assertEqual(await kindIn(fixture.begin('b')), 'claimed');
  },
  async 'W_BEGIN_NOT_IDEMPOTENT: I9: an attempt is not refused because of its own claim'(fixture) {
    const generation = await fixture.claim('a');
    assertEqual(await fixture.claim('a'), generation);
  },
  async 'W_NO_LEASE: I9: a claim whose owner died can be taken over when its lease expires, and not before'(fixture) {
    const generation = await fixture.claim('a');
    fixture.clock.advance(999);
    assertEqual(await fixture.begin('b'), { kind: 'in_progress', remainingMs: 1 });
    fixture.clock.advance(1);
    assertEqual(await fixture.begin('b'), {
      kind: 'claimed',
      generation: generation + 1,
      inherited: false,
      dispatched: false,
    });
  },
  async 'W_COMPLETE_NEEDS_LEASE: I10: an outcome is stored even if the lease has expired'(fixture) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    assertEqual(await fixture.complete('a'), OK);
    assertEqual(await fixture.begin('b'), { kind: 'settled', result: resultWith('a') });
  },
  async 'W_COMPLETE_NEEDS_OWNER: I10: an earlier owner can complete a claim that is still open'(fixture) {
    await fixture.claim('a');
    fixture.expireLease();
    const generation = await fixture.claim('b');
    assertEqual(await fixture.complete('a'), OK);
    for (const reply of [
      fixture.dispatch('b', generation),
      fixture.extend('b', generation),
      fixture.abandon('b', generation),
    ]) {
      assertEqual(await reply, { kind: 'settled', result: resultWith('a') });
    }
  },
  async 'FUSED without DEADLINE: I9: a begin after its deadline does nothing'(fixture) {
    const deadline = fixture.clock.now();
    assertEqual(
      await kindIn(fixture.begin('a', { dispatch: true, deadline, id: { scope: 'app', key: 'in time' } })),
      'claimed',
    );
    fixture.clock.advance(1);
    assertEqual(await fixture.begin('a', { dispatch: true, deadline }), { kind: 'late' });
    assertEqual(await fixture.inspect(), undefined);
  },
  async 'W_COMPLETE_OVERWRITES: I10: the first outcome wins, and the loser gets it'(fixture) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    await fixture.claim('b', { onOrphan: 'reexecute' });
    assertEqual(await fixture.complete('b'), OK);
    assertEqual(await fixture.complete('a'), { kind: 'superseded', result: resultWith('b') });
    assertEqual(await fixture.complete('b', resultWith('again')), OK);
    assertEqual(await fixture.begin('c'), { kind: 'settled', result: resultWith('b') });
  },
  async 'W_COMPLETED_SKIPS_FINGERPRINT: I2: a result is never returned to another request'(fixture) {
    const generation = await fixture.claim('a', { dispatch: true });
    await fixture.complete('a');
    assertEqual(await fixture.begin('b', { fingerprint: 'g' }), { kind: 'mismatch', fingerprint: 'f' });
    for (const reply of [
      fixture.extend('a', generation, 'g'),
      fixture.dispatch('a', generation, 'g'),
      fixture.complete('a', resultWith('a'), 'g'),
      fixture.abandon('a', generation, 'g'),
    ]) {
      assertEqual(await reply, LOST);
    }
  },
  async 'W_FREE_FORGETS_FINGERPRINT: I6: a released key keeps its fingerprint'(fixture) {
    await fixture.abandon('a', await fixture.claim('a'));
    assertEqual(await fixture.begin('b', { fingerprint: 'g' }), { kind: 'mismatch', fingerprint: 'f' });
    assertEqual(await kindIn(fixture.begin('b')), 'claimed');
  },
  async 'I6: the record of a released key expires after its own, shorter retention'(fixture) {
    await fixture.abandon('a', await fixture.claim('a'));
    fixture.clock.advance(9_999);
    assertEqual(await fixture.begin('b', { fingerprint: 'g' }), { kind: 'mismatch', fingerprint: 'f' });
    fixture.clock.advance(1);
    assertEqual(await fixture.inspect(), undefined);
    assertEqual(await kindIn(fixture.begin('b', { fingerprint: 'g' })), 'claimed');
  },
  async 'W_CLAIM_EXPIRES_AS_FREE: I8: a key that is claimed again after its release is stored for the whole retention'(
    fixture,
  ) {
    await fixture.abandon('a', await fixture.claim('a'));
    await fixture.claim('b');
    fixture.expireReleased();
    assertEqual(await kindIn(fixture.begin('c', { fingerprint: 'g' })), 'mismatch');
    assertEqual(await fixture.complete('b'), OK);
    fixture.expireReleased();
    assertEqual(await fixture.begin('c'), { kind: 'settled', result: resultWith('b') });
  },
  async 'W_COMPLETE_WITHOUT_FINGERPRINT: I2, I10: after a data loss, a late outcome is not returned to another request'(
    fixture,
  ) {
    // Without the mark. A store that lost the record behaves as if the retention had ended.
    await fixture.claim('a');
    fixture.expireRetention();
    await fixture.claim('b', { fingerprint: 'g' });
    assertEqual(await fixture.complete('a'), LOST);
    assertEqual(await kindIn(fixture.begin('c', { fingerprint: 'g' })), 'in_progress');
  },
  async 'W_COMPLETE_NEEDS_RECORD: I6: an outcome is stored even if its record was lost'(fixture) {
    assertEqual(await fixture.complete('a'), OK);
    assertEqual(await fixture.begin('b'), { kind: 'settled', result: resultWith('a') });
  },
  async 'W_TAKEOVER_CLEARS_MARK: I9: a takeover of an orphan stays marked as dispatched until its owner dispatches'(
    fixture,
  ) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    const generation = await fixture.claim('b', { onOrphan: 'reconcile' });
    const inherited = { kind: 'claimed', generation, inherited: true, dispatched: false };
    assertEqual(await fixture.begin('b', { onOrphan: 'reconcile' }), inherited);
    fixture.expireLease();
    assertEqual(await fixture.begin('c'), { kind: 'orphan' });
    const third = { ...inherited, generation: generation + 1 };
    assertEqual(await fixture.begin('c', { onOrphan: 'reconcile', dispatch: true }), third);
    assertEqual(await fixture.dispatch('c', generation + 1), OK);
    assertEqual((await fixture.inspect())?.inherited, false);
  },
  async 'W_ABANDON_FREES_INHERITED: I9: releasing such a takeover makes it an orphan again, at once'(fixture) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    assertEqual(await fixture.abandon('b', await fixture.claim('b', { onOrphan: 'reconcile' })), {
      kind: 'released',
    });
    assertEqual(await fixture.begin('c'), { kind: 'orphan' });
    assertEqual((await fixture.begin('c', { onOrphan: 'reconcile' })).kind, 'claimed');
  },
  async 'W_ORPHAN_EXPIRES_AS_FREE: I9: such an orphan is stored for the whole retention'(fixture) {
    await fixture.claim('a', { dispatch: true });
    fixture.expireLease();
    await fixture.abandon('b', await fixture.claim('b', { onOrphan: 'reconcile' }));
    fixture.expireReleased();
    assertEqual(await fixture.begin('c'), { kind: 'orphan' });
  },
  async 'RECREATE: I10: a renewal never creates a claim'(fixture) {
    assertEqual(await fixture.extend('a', 1), LOST);
    assertEqual(await fixture.dispatch('a', 1), LOST);
    assertEqual(await fixture.abandon('a'), LOST);
    assertEqual(await fixture.inspect(), undefined);
  },
  async 'I6: an owner can release a dispatched claim if the effect is known not to have happened'(fixture) {
    assertEqual(await fixture.abandon('a', await fixture.claim('a', { dispatch: true })), { kind: 'released' });
    assertEqual((await fixture.begin('b')).kind, 'claimed');
    fixture.expireLease();
    assertEqual((await fixture.begin('c')).kind, 'claimed');
  },
  async 'I8: a result is stored for its retention, to the millisecond'(fixture) {
    await fixture.claim('a', { dispatch: true });
    await fixture.complete('a');
    fixture.clock.advance(99_999);
    assertEqual((await fixture.begin('b')).kind, 'settled');
    fixture.clock.advance(1);
    assertEqual(await fixture.inspect(), undefined);
    assertEqual(await fixture.claim('b', { fingerprint: 'g' }), 1);
  },
};
