import { describe, expect, it } from 'vitest';
import type { Reconciled } from '../../src/idempotency/index.ts';
import type { RunOptions } from '../../src/index.ts';
import { settled } from '../support/fake-timers.ts';
import { createOperation, createWorld, type World } from '../support/idempotency.ts';

const id = { scope: '', key: 'k' };

/** A world in which the owner of `id` has died after dispatch. */
async function orphaned(options: RunOptions<string>): Promise<World> {
  const world = createWorld();
  const dead = world.gateway();
  void dead.idempotency.run('k', 'r', () => new Promise<string>(() => {}), { ...options, reconcile: () => 'unknown' });
  await settled();
  dead.line.always = 'hung';
  await world.timers.advance(30_000);
  return world;
}

describe('I9: an owner that died after dispatch', () => {
  it('reject: a retry is refused at once, and does not execute', async () => {
    const world = await orphaned({});
    const { idempotency, events } = world.gateway();
    const before = world.timers.now();
    expect(await idempotency.run('k', 'r', () => expect.unreachable())).toEqual({ kind: 'refused', reason: 'orphan' });
    expect(world.timers.now()).toBe(before);
    expect(events).toContainEqual({ ...id, type: 'refused', reason: 'orphan' });
  });

  it('reexecute: a retry executes, and its context says that an earlier owner dispatched', async () => {
    const world = await orphaned({ onOrphan: 'reexecute' });
    const { idempotency, line, events } = world.gateway({ onOrphan: 'reexecute' });
    let context: unknown;
    const result = await idempotency.run('k', 'r', ({ inherited, generation }) => {
      context = { inherited, generation };
      return 'again';
    });
    expect(result).toEqual({ kind: 'executed', value: 'again', kept: true });
    expect(context).toEqual({ inherited: true, generation: 2 });
    // An inherited claim is always dispatched explicitly.
    expect(line.sent).toEqual(['begin', 'dispatch', 'complete']);
    expect(events).toContainEqual({ ...id, type: 'claimed', inherited: true });
  });

  it('a release by an owner that took the claim over makes it an orphan again', async () => {
    const world = await orphaned({ onOrphan: 'reexecute' });
    const { idempotency } = world.gateway();
    const options = { onOrphan: 'reexecute', dispatch: 'explicit' } as const;
    const limited = idempotency.run('k', 'r', () => Promise.reject(new Error('429')), options);
    await expect(limited).rejects.toThrow('429');
    expect(await idempotency.run('k', 'r', () => 'x')).toEqual({ kind: 'refused', reason: 'orphan' });
    expect(await idempotency.run('k', 'r', () => 'x', options)).toMatchObject({ kind: 'executed' });
  });

  it('a retry with reexecute never takes over the claim of a living owner that dispatched with reject', async () => {
    const world = createWorld();
    const alive = world.gateway();
    const run = alive.idempotency.run('k', 'r', () => new Promise<string>(() => {}));
    void run;
    await world.timers.advance(300_000);
    const retry = world.gateway({ waitMs: 0, onOrphan: 'reexecute' });
    expect(await retry.idempotency.run('k', 'r', () => expect.unreachable())).toMatchObject({ reason: 'in_progress' });
  });
});

describe('I9: reconcile', () => {
  const orphanWithCallback = async (answer: () => Reconciled<string> | Promise<Reconciled<string>>) => {
    const world = await orphaned({ onOrphan: 'reconcile' });
    const gateway = world.gateway({ onOrphan: 'reconcile', reconcile: () => answer() });
    let runs = 0;
    const run = () => gateway.idempotency.run('k', 'r', () => `run ${++runs}`);
    return { world, gateway, run, runs: () => runs };
  };

  it('done: every retry gets the result of the callback, and no operation runs', async () => {
    const { run, runs, gateway } = await orphanWithCallback(() => ({ done: true, result: 'sent' }));
    expect(await run()).toEqual({ kind: 'replayed', value: 'sent' });
    expect(await run()).toEqual({ kind: 'replayed', value: 'sent' });
    expect(runs()).toBe(0);
    expect(gateway.line.sent).toEqual(['begin', 'complete', 'begin']);
    expect(gateway.events).toContainEqual({ ...id, type: 'reconciled', answer: 'done' });
  });

  it('not done: the retry executes, with an explicit dispatch', async () => {
    const { run, gateway } = await orphanWithCallback(() => ({ done: false }));
    expect(await run()).toEqual({ kind: 'executed', value: 'run 1', kept: true });
    expect(gateway.line.sent).toEqual(['begin', 'dispatch', 'complete']);
  });

  it.each([
    ['unknown', () => 'unknown' as const],
    ['a callback that throws', () => Promise.reject(new Error('the provider is away'))],
    ['a callback that returns nothing', () => undefined as never],
    ['an answer without done', () => ({}) as never],
    ['a done that is not a boolean', () => ({ done: 'yes' }) as never],
  ])('%s: no operation runs, it is an orphan again, and the next retry asks again', async (_, answer) => {
    const { run, runs, gateway, world } = await orphanWithCallback(answer);
    expect(await run()).toEqual({ kind: 'refused', reason: 'orphan' });
    expect(gateway.line.sent).toEqual(['begin', 'abandon']);
    expect([gateway.idempotency.held, world.timers.waiting]).toEqual([0, 0]);
    const orphan = { state: 'in_progress', generation: 2, inherited: true, leaseMs: 0 };
    expect(world.store.inspect(id)).toMatchObject(orphan);
    expect(await run()).toEqual({ kind: 'refused', reason: 'orphan' });
    expect(world.store.inspect(id)).toMatchObject({ generation: 3 });
    expect(runs()).toBe(0);
  });

  it('renews the lease while it asks', async () => {
    let answer: (answer: Reconciled<string>) => void = () => {};
    const { run, world } = await orphanWithCallback(() => new Promise((resolve) => (answer = resolve)));
    const result = run();
    await world.timers.advance(100_000);
    const another = world.gateway({ waitMs: 0, onOrphan: 'reconcile', reconcile: () => ({ done: false }) });
    expect(await another.idempotency.run('k', 'r', () => expect.unreachable())).toMatchObject({
      reason: 'in_progress',
    });
    answer({ done: true, result: 'sent' });
    expect(await result).toEqual({ kind: 'replayed', value: 'sent' });
  });

  it('does not execute a claim that was taken over while it asked', async () => {
    let answer: (answer: Reconciled<string>) => void = () => {};
    const { run, world, gateway } = await orphanWithCallback(() => new Promise((resolve) => (answer = resolve)));
    const result = run();
    await settled();
    gateway.line.always = 'lost';
    await world.timers.advance(40_000);
    const another = world.gateway({ onOrphan: 'reexecute' });
    expect(await another.idempotency.run('k', 'r', () => 'theirs')).toMatchObject({ kind: 'executed' });
    gateway.line.always = 'ok';
    await world.timers.advance(10_000);
    answer({ done: false });
    expect(await result).toEqual({ kind: 'refused', reason: 'lost' });
  });

  it('I10: if the original completes first, its outcome counts, not the answer of the callback', async () => {
    const world = createWorld();
    const options = { onOrphan: 'reconcile', reconcile: () => ({ done: true, result: 'theirs' }) } as const;
    const [slow, asking] = [world.gateway(options), world.gateway(options)];
    const operation = createOperation<string>();
    const original = slow.idempotency.run('k', 'r', operation.run);
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    asking.line.next('complete', 'hung');
    const retry = asking.idempotency.run('k', 'r', () => expect.unreachable());
    await settled();
    operation.end('mine');
    expect(await original).toMatchObject({ kind: 'executed', value: 'mine', kept: true });
    asking.line.deliver();
    expect(await retry).toEqual({ kind: 'replayed', value: 'mine' });
  });

  it('P2: does not return the result of the callback before it is stored', async () => {
    const { run, gateway, world } = await orphanWithCallback(() => ({ done: true, result: 'sent' }));
    gateway.line.next('complete', 'lost');
    expect(await run()).toMatchObject({ kind: 'unavailable' });
    await world.timers.advance(1_000);
    expect(await run()).toEqual({ kind: 'replayed', value: 'sent' });
  });

  it('open: the callback returns the result in its stored form', async () => {
    const world = await orphaned({ onOrphan: 'reconcile' });
    const view = world.store.inspect(id);
    const { idempotency } = world.gateway({ onOrphan: 'reconcile' });
    let received: unknown;
    const opened = await idempotency.open({
      ...id,
      fingerprint: view?.fingerprint ?? '',
      dispatch: 'explicit',
      reconcile: (about) => {
        received = { ...about, signal: about.signal.aborted };
        return { done: true, result: { status: '201', value: 'x' } };
      },
    });
    expect(opened).toEqual({ kind: 'replay', result: { status: '201', value: 'x' } });
    expect(received).toEqual({ ...id, fingerprint: view?.fingerprint, generation: 2, signal: false });
  });
});
