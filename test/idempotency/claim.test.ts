import { describe, expect, it } from 'vitest';
import type { Claim, OpenRequest } from '../../src/idempotency/index.ts';
import { settled } from '../support/fake-timers.ts';
import { createWorld, type Gateway, ID, type World } from '../support/idempotency.ts';

const KEPT = { status: '200', value: 'body' };

async function claimed(gateway: Gateway, request: Partial<OpenRequest> = {}): Promise<Claim> {
  const opened = await gateway.idempotency.open({ ...ID, fingerprint: 'f', dispatch: 'explicit', ...request });
  if (opened.kind !== 'claimed') throw new Error(`not claimed: ${JSON.stringify(opened)}`);
  return opened.claim;
}

/** An owner whose lease expired because its commands were lost, and another owner that took the claim over. */
async function takenOver(world: World, request: Partial<OpenRequest> = {}, firstDispatches = false) {
  const first = world.gateway();
  const stale = await claimed(first, request);
  if (firstDispatches) await stale.dispatch();
  first.line.always = 'lost';
  await world.timers.advance(30_000);
  const second = world.gateway();
  const owner = await claimed(second, request);
  first.line.always = 'ok';
  return { first, stale, second, owner };
}

describe('a claim', () => {
  it('is dispatched, completed and replayed', async () => {
    const world = createWorld();
    const gateway = world.gateway();
    const claim = await claimed(gateway);
    expect(claim).toMatchObject({ ...ID, fingerprint: 'f', generation: 1, inherited: false, dispatched: false });
    expect(await claim.dispatch()).toEqual({ kind: 'ok' });
    expect(claim.dispatched).toBe(true);
    expect(await claim.complete(KEPT)).toEqual({ kind: 'kept' });
    const opened = await gateway.idempotency.open({ ...ID, fingerprint: 'f', dispatch: 'explicit' });
    expect(opened).toEqual({ kind: 'replay', result: KEPT });
    expect(world.timers.waiting).toBe(0);
    expect(gateway.idempotency.held).toBe(0);
  });

  it('with automatic dispatch, is dispatched by the command that claims it', async () => {
    const gateway = createWorld().gateway();
    const claim = await claimed(gateway, { dispatch: 'automatic' });
    expect(claim.dispatched).toBe(true);
    expect(await claim.dispatch()).toEqual({ kind: 'ok' });
    expect(gateway.line.sent).toEqual(['begin']);
  });

  it('is completed once, and every call of complete returns the same result', async () => {
    const gateway = createWorld().gateway();
    const claim = await claimed(gateway);
    await claim.dispatch();
    const [one, two] = await Promise.all([claim.complete(KEPT), claim.complete({ status: '500', value: 'late' })]);
    expect([one, two]).toEqual([{ kind: 'kept' }, { kind: 'kept' }]);
    expect(await claim.abandon()).toEqual({ kind: 'lost' });
    expect(gateway.line.sent).toEqual(['begin', 'dispatch', 'complete']);
  });

  it('is released once; nothing is dispatched or stored after that', async () => {
    const { store, gateway } = createWorld();
    const one = gateway();
    const claim = await claimed(one);
    expect(await claim.abandon()).toEqual({ kind: 'released' });
    expect(await claim.abandon()).toEqual({ kind: 'lost' });
    expect(await claim.dispatch()).toEqual({ kind: 'lost' });
    expect(await claim.complete(KEPT)).toEqual({ kind: 'lost' });
    expect(one.line.sent).toEqual(['begin', 'abandon']);
    expect(store.inspect(ID)).toMatchObject({ state: 'free' });
  });

  it('rejects a dispatch after abandon, also if both are called at the same time', async () => {
    const gateway = createWorld().gateway();
    const claim = await claimed(gateway);
    const [released, dispatched] = await Promise.all([claim.abandon(), claim.dispatch()]);
    expect([released.kind, dispatched.kind]).toEqual(['released', 'lost']);
  });

  it('is released only after the reply to a dispatch in flight', async () => {
    const { store, gateway } = createWorld();
    const one = gateway();
    const claim = await claimed(one);
    one.line.next('dispatch', 'hung');
    const dispatched = claim.dispatch();
    const released = claim.abandon();
    await settled();
    expect(one.line.sent).toEqual(['begin', 'dispatch']);
    one.line.deliver();
    expect([await dispatched, await released]).toEqual([{ kind: 'ok' }, { kind: 'released' }]);
    expect(store.inspect(ID)).toMatchObject({ state: 'free', dispatched: false });
  });

  it('W_TOKEN_PER_GATEWAY: two requests at one gateway are two owners', async () => {
    const gateway = createWorld().gateway({ waitMs: 0 });
    await claimed(gateway);
    const second = await gateway.idempotency.open({ ...ID, fingerprint: 'f', dispatch: 'explicit' });
    expect(second).toMatchObject({ kind: 'refused', reason: 'in_progress' });
  });
});

describe('I9: the lease', () => {
  it('is renewed after a third of it, by one timer, while the claim is open', async () => {
    const world = createWorld();
    const gateway = world.gateway({ leaseMs: 30_000 });
    const claim = await claimed(gateway);
    expect(world.timers.waiting).toBe(1);
    await world.timers.advance(9_999);
    expect(gateway.line.sent).toEqual(['begin']);
    await world.timers.advance(1);
    expect(gateway.line.sent).toEqual(['begin', 'extend']);
    await world.timers.advance(600_000);
    expect(world.store.inspect(ID)).toMatchObject({ generation: 1, leaseMs: 30_000 });
    expect(world.timers.waiting).toBe(1);
    expect(await claim.dispatch()).toEqual({ kind: 'ok' });
    await claim.complete(KEPT);
    expect(world.timers.waiting).toBe(0);
  });

  it('is renewed sooner after a failure, so that lost renewals do not lose the claim', async () => {
    const world = createWorld();
    const gateway = world.gateway({ leaseMs: 12_000 });
    await claimed(gateway);
    gateway.line.next('extend', 'lost', 'unheard', 'lost');
    await world.timers.advance(4_000 + 3 * 1_000);
    expect(gateway.line.sent).toEqual(['begin', 'extend', 'extend', 'extend', 'extend']);
    expect(world.store.inspect(ID)).toMatchObject({ leaseMs: 12_000 });
  });

  it('a stale owner learns of its loss from its next renewal: its signal is aborted and nothing is dispatched', async () => {
    const world = createWorld();
    const { first, stale, owner } = await takenOver(world);
    expect(owner).toMatchObject({ generation: 2, inherited: false });
    const { signal } = stale;
    expect(signal.aborted).toBe(false);
    await world.timers.advance(10_000);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: 'claim_lost' });
    expect(await stale.dispatch()).toEqual({ kind: 'lost' });
    expect(await stale.complete(KEPT)).toEqual({ kind: 'lost' });
    expect(first.line.sent).not.toContain('dispatch');
    expect(first.events).toContainEqual({ ...ID, type: 'lost', command: 'extend' });
    expect(first.idempotency.held).toBe(0);
    expect(await owner.dispatch()).toEqual({ kind: 'ok' });
  });

  it('a stale owner learns of its loss from its dispatch', async () => {
    const { stale } = await takenOver(createWorld());
    expect(await stale.dispatch()).toEqual({ kind: 'lost' });
    expect(stale.signal.aborted).toBe(true);
  });

  it('a stale owner gets the outcome of the new owner from its dispatch', async () => {
    const { stale, owner } = await takenOver(createWorld());
    await owner.dispatch();
    await owner.complete(KEPT);
    expect(await stale.dispatch()).toEqual({ kind: 'settled', result: KEPT });
  });

  it('an expired lease does not matter if no other owner took the claim', async () => {
    const world = createWorld();
    const gateway = world.gateway();
    const claim = await claimed(gateway);
    gateway.line.always = 'lost';
    await world.timers.advance(100_000);
    gateway.line.always = 'ok';
    expect(await claim.dispatch()).toEqual({ kind: 'ok' });
    expect(claim.signal.aborted).toBe(false);
  });

  it('reject: a loss after dispatch changes nothing, and the outcome is stored', async () => {
    const world = createWorld();
    const gateway = world.gateway();
    const claim = await claimed(gateway);
    await claim.dispatch();
    expect(await world.gateway().idempotency.release(ID, { force: true })).toBe('released');
    await world.timers.advance(10_000);
    expect(gateway.events).toContainEqual({ ...ID, type: 'lost', command: 'extend' });
    expect(claim.signal.aborted).toBe(false);
    expect(await claim.complete(KEPT)).toEqual({ kind: 'kept' });
    expect(world.timers.waiting).toBe(0);
  });

  it('reexecute: an owner that lost its claim after dispatch is notified, and may still complete', async () => {
    const world = createWorld();
    const { first, stale, owner } = await takenOver(world, { onOrphan: 'reexecute' }, true);
    expect(owner).toMatchObject({ generation: 2, inherited: true, dispatched: false });
    await world.timers.advance(10_000);
    expect(stale.signal.aborted).toBe(true);
    expect(await stale.complete(KEPT)).toEqual({ kind: 'kept' });
    expect(first.idempotency.held).toBe(0);
    await world.timers.advance(10_000);
    expect(await owner.dispatch()).toEqual({ kind: 'lost' });
  });

  it('reexecute: an owner that cannot renew for a whole lease is notified', async () => {
    const world = createWorld();
    const gateway = world.gateway();
    const claim = await claimed(gateway, { onOrphan: 'reexecute' });
    await claim.dispatch();
    gateway.line.always = 'lost';
    await world.timers.advance(29_999);
    expect(claim.signal.aborted).toBe(false);
    await world.timers.advance(2_501);
    expect(claim.signal.aborted).toBe(true);
  });
});

describe('I10: which outcome counts', () => {
  it('a stale owner that has dispatched can complete a claim that another owner has taken over', async () => {
    const world = createWorld();
    const { stale, owner } = await takenOver(world, { onOrphan: 'reexecute' }, true);
    expect(await stale.complete(KEPT)).toEqual({ kind: 'kept' });
    expect(await owner.dispatch()).toEqual({ kind: 'settled', result: KEPT });
  });

  it('the first outcome supersedes the second', async () => {
    const world = createWorld();
    const { stale, owner, first } = await takenOver(world, { onOrphan: 'reexecute' }, true);
    await owner.dispatch();
    expect(await owner.complete(KEPT)).toEqual({ kind: 'kept' });
    expect(await stale.complete({ status: '500', value: 'mine' })).toEqual({ kind: 'superseded', result: KEPT });
    expect(first.events).toContainEqual({ ...ID, type: 'superseded' });
  });

  it('a stale owner cannot release a claim that was taken over', async () => {
    const world = createWorld();
    const { stale, owner } = await takenOver(world);
    expect(await stale.abandon()).toEqual({ kind: 'lost' });
    expect(await owner.dispatch()).toEqual({ kind: 'ok' });
  });
});
