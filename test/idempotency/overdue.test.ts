import { describe, expect, it } from 'vitest';
import type { RunOptions } from '../../src/index.ts';
import { createOperation, createWorld, type World } from '../support/idempotency.ts';

const id = { scope: '', key: 'k' };
const HOUR_MS = 3_600_000;

/** A world in which an operation does not finish, although its process is alive. */
async function stuck(options: RunOptions<string> = {}) {
  const world = createWorld();
  const gateway = world.gateway();
  const operation = createOperation<string>();
  let signal: AbortSignal | undefined;
  const run = gateway.idempotency.run(
    'k',
    'r',
    (context) => {
      signal = context.signal;
      return operation.run();
    },
    options,
  );
  await world.timers.advance(0);
  return { world, gateway, operation, run, isAborted: () => signal?.aborted };
}

const retryOf = (world: World, options: RunOptions<string> = {}) =>
  world.gateway().idempotency.run('k', 'r', () => 'again', { waitMs: 0, ...options });

describe('I9: an operation that never finishes', () => {
  it('holds its key for maxRunMs, one hour by default; then it is an orphan and an event reports it', async () => {
    const { world, gateway, isAborted } = await stuck();
    await world.timers.advance(HOUR_MS - 1);
    expect(await retryOf(world)).toMatchObject({ reason: 'in_progress' });
    expect([isAborted(), gateway.idempotency.held, gateway.events.some(({ type }) => type === 'overdue')]).toEqual([
      false,
      1,
      false,
    ]);
    await world.timers.advance(30_001);
    expect(gateway.events).toContainEqual({ ...id, type: 'overdue', dispatched: true });
    expect(await retryOf(world)).toEqual({ kind: 'refused', reason: 'orphan' });
    expect([isAborted(), gateway.idempotency.held, world.timers.waiting]).toEqual([true, 0, 0]);
    await gateway.idempotency.idle();
  });

  it('becomes an orphan at most maxRunMs and one lease after its begin, for any values of the two', async () => {
    for (const [maxRunMs, leaseMs] of [
      [1, 30_000],
      [10_000, 3_000],
      [3_000, 10_000],
    ] as const) {
      const { world } = await stuck({ maxRunMs, leaseMs });
      await world.timers.advance(maxRunMs - 1);
      expect(await retryOf(world)).toMatchObject({ reason: 'in_progress' });
      await world.timers.advance(leaseMs);
      expect(await retryOf(world)).toMatchObject({ reason: 'orphan' });
    }
  });

  it('reexecute: a retry executes', async () => {
    const { world } = await stuck({ maxRunMs: 60_000, onOrphan: 'reexecute' });
    await world.timers.advance(90_000);
    expect(await retryOf(world, { onOrphan: 'reexecute' })).toMatchObject({ kind: 'executed', value: 'again' });
  });

  it('I10: if it finishes later, its outcome counts', async () => {
    const { world, operation, run } = await stuck({ maxRunMs: 60_000 });
    await world.timers.advance(90_000);
    operation.end('late');
    expect(await run).toEqual({ kind: 'executed', value: 'late', kept: true });
    expect(await retryOf(world)).toEqual({ kind: 'replayed', value: 'late' });
  });

  it('I10: if another outcome was stored first, its caller gets that one', async () => {
    const { world, operation, run } = await stuck({ maxRunMs: 60_000, onOrphan: 'reexecute' });
    await world.timers.advance(90_000);
    await retryOf(world, { onOrphan: 'reexecute' });
    operation.end('late');
    expect(await run).toEqual({ kind: 'replayed', value: 'again' });
  });

  it('an owner that has not dispatched loses its key: a retry executes, and the owner must not', async () => {
    const world = createWorld();
    const gateway = world.gateway({ maxRunMs: 60_000 });
    const opened = await gateway.idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    await world.timers.advance(90_000);
    expect(gateway.events).toContainEqual({ ...id, type: 'overdue', dispatched: false });
    const retry = await world.gateway().idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    expect(retry).toMatchObject({ kind: 'claimed', claim: { inherited: false } });
    expect(opened.kind === 'claimed' && (await opened.claim.dispatch())).toEqual({ kind: 'lost' });
  });

  it.each([0, 86_400_001, 1.5])('rejects maxRunMs %s', async (maxRunMs) => {
    await expect(
      createWorld()
        .gateway()
        .idempotency.run('k', 'r', () => 'x', { maxRunMs }),
    ).rejects.toThrow('must be an integer from 1 to 86400000');
  });
});
