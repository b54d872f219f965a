import { describe, expect, it, vi } from 'vitest';
import { createIdempotency, type IdempotencyOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { settled } from '../support/fake-timers.ts';
import { createOperation, createWorld, ID } from '../support/idempotency.ts';

const id = { scope: '', key: 'k' };

describe('an operator', () => {
  /** A gateway whose owner of `id` has died, and another gateway on the same store. */
  async function afterDeath(options: Partial<IdempotencyOptions> = {}) {
    const world = createWorld();
    const dead = world.gateway(options);
    void dead.idempotency.run('k', 'r', () => new Promise<string>(() => {}));
    await settled();
    dead.line.always = 'hung';
    await world.timers.advance(20_000);
    return { world, ...world.gateway(options) };
  }

  it('inspects the claim of a key', async () => {
    const { idempotency } = await afterDeath();
    expect(await idempotency.inspect(id)).toMatchObject({ state: 'in_progress', dispatched: true, leaseMs: 10_000 });
    expect(await idempotency.inspect(ID)).toBeUndefined();
  });

  it('releases an orphan, but not before its lease expires', async () => {
    const { idempotency, world } = await afterDeath();
    expect(await idempotency.release(id)).toBe('in_progress');
    await world.timers.advance(10_000);
    expect(await idempotency.run('k', 'r', () => 'x')).toMatchObject({ reason: 'orphan' });
    expect(await idempotency.release(id)).toBe('released');
    expect(await idempotency.run('k', 'r', () => 'x')).toMatchObject({ kind: 'executed' });
    expect(await idempotency.release(id)).toBe('completed');
    expect(await idempotency.release(ID)).toBe('absent');
  });

  it('with force, releases before the lease expires: the owner learns it from its next command', async () => {
    const world = createWorld();
    const { idempotency } = world.gateway();
    const opened = await idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    expect(await idempotency.release(id, { force: true })).toBe('released');
    expect(opened.kind === 'claimed' && (await opened.claim.dispatch())).toEqual({ kind: 'lost' });
    expect(await idempotency.release(id, { force: true })).toBe('absent');
  });

  it('releases a claim with an inherited dispatch mark', async () => {
    const { idempotency, world } = await afterDeath({ onOrphan: 'reexecute' });
    await world.timers.advance(10_000);
    const options = { dispatch: 'explicit' } as const;
    await idempotency.run('k', 'r', () => Promise.reject(new Error('429')), options).catch(() => {});
    expect(await idempotency.inspect(id)).toMatchObject({ dispatched: true, owner: '', leaseMs: 0 });
    expect(await idempotency.release(id)).toBe('released');
    expect(await idempotency.inspect(id)).toMatchObject({ state: 'free', dispatched: false });

    const again = await idempotency.open({ ...id, fingerprint: 'other', dispatch: 'explicit' });
    expect(again).toMatchObject({ reason: 'mismatch' });
  });

  it('completes an orphan with its outcome, also for waiting duplicates', async () => {
    const { idempotency } = await afterDeath();
    const waiting = idempotency.run('k', 'r', () => expect.unreachable());
    await settled();
    expect(await idempotency.complete(id, { id: 'mail_1' })).toBe('completed');
    expect(await waiting).toEqual({ kind: 'replayed', value: { id: 'mail_1' } });
    expect(await idempotency.complete(id, 'another')).toBe('already_completed');
    expect(await idempotency.complete(ID, 'x')).toBe('absent');
  });

  it('completes a claim of the gate with a result in the format of the gate', async () => {
    const { idempotency } = createWorld().gateway();
    await idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    await idempotency.completeWith(id, { status: '202', value: 'x' });
    const opened = await idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    expect(opened).toEqual({ kind: 'replay', result: { status: '202', value: 'x' } });
  });
});

describe('close and idle', () => {
  it('close lets running operations finish, then closes the store', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const operation = createOperation<number>();
    const run = idempotency.run('k', 'r', operation.run);
    await settled();
    const closing = idempotency.close();
    await expect(idempotency.run('other', 'r', () => 1)).rejects.toMatchObject({ code: 'closed' });
    const opened = idempotency.open({ ...ID, fingerprint: 'f', dispatch: 'explicit' });
    expect(await opened).toMatchObject({ kind: 'unavailable', error: { code: 'closed' } });
    await timers.advance(1_000);
    expect(line.closed).toBe(false);
    operation.end(1);
    expect(await run).toMatchObject({ kind: 'executed', kept: true });
    await closing;
    expect(line.closed).toBe(true);
    expect(timers.waiting).toBe(0);
  });

  it('close waits at most timeoutMs, and leaves no timer', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const operation = createOperation<number>();
    void idempotency.run('k', 'r', operation.run);
    void idempotency.run('l', 'r', () => 1);
    line.next('begin', 'ok', 'ok');
    line.always = 'lost';
    await settled();
    expect([idempotency.held, idempotency.pending]).toEqual([1, 1]);
    const closing = idempotency.close({ timeoutMs: 100 });
    await timers.advance(100);
    await closing;
    expect(line.closed).toBe(true);
    expect([timers.waiting, idempotency.pending]).toEqual([0, 0]);
    operation.end(1);
    await settled();
    expect([timers.waiting, idempotency.pending]).toEqual([0, 0]);
  });

  it('close ends all waiting', async () => {
    const { gateway } = createWorld();
    const [here, there] = [gateway(), gateway()];
    const operation = createOperation<number>();
    void there.idempotency.run('k', 'r', operation.run);
    const duplicate = here.idempotency.run('k', 'r', operation.run);
    await settled();
    await here.idempotency.close();
    expect(await duplicate).toMatchObject({ kind: 'unavailable', error: { code: 'closed' } });
    operation.end(1);
  });

  it('idle resolves when no claim is held and no command is pending', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    await idempotency.idle();
    const operation = createOperation<number>();
    void idempotency.run('k', 'r', operation.run);
    await settled();
    let idle = false;
    void idempotency.idle().then(() => {
      idle = true;
    });
    line.next('complete', 'lost', 'lost');
    operation.end(1);
    await settled();
    expect([idle, idempotency.held, idempotency.pending]).toEqual([false, 0, 1]);
    await timers.advance(50);
    expect(idle).toBe(true);
  });
});

describe('createIdempotency', () => {
  const store = createMemoryClaimStore();

  it.each([
    [{}, 'store'],
    [{ store: {} }, 'store'],
    [{ store, leaseMs: 0 }, 'leaseMs'],
    [{ store, leaseMs: 1.5 }, 'leaseMs'],
    [{ store, waitMs: -1 }, 'waitMs'],
    [{ store, retentionMs: 31_536_000_001 }, 'retentionMs'],
    [{ store, maxKeptBytes: '1' }, 'maxKeptBytes'],
    [{ store, onOrphan: 'retry' }, 'onOrphan'],
    [{ store, onStoreFailure: 'local' }, 'onStoreFailure'],
    [{ store, onEvent: 'log' }, 'onEvent'],
    [{ store, reconcile: true }, 'reconcile'],
    [{ store, lease: 1 }, 'options.lease'],
  ])('rejects %j', (options, option) => {
    expect(() => createIdempotency(options as never)).toThrow(expect.objectContaining({ option }));
  });

  it('has the documented defaults', () => {
    expect(createIdempotency({ store, waitMs: undefined }).settings).toEqual({
      leaseMs: 30_000,
      maxRunMs: 3_600_000,
      waitMs: 10_000,
      retentionMs: 86_400_000,
      releasedRetentionMs: 600_000,
      maxKeptBytes: 1_048_576,
      onOrphan: 'reject',
      onStoreFailure: 'refuse',
    });
  });

  it.each([
    [{ ...id, dispatch: 'explicit' }, 'invalid_subject'],
    [{ ...id, fingerprint: 'f' }, 'invalid_option'],
    [{ ...id, fingerprint: 'f', dispatch: 'explicit', wait: 1 }, 'invalid_option'],
    [{ ...id, fingerprint: 'f', dispatch: 'explicit', onOrphan: 'reconcile' }, 'invalid_option'],
  ])('open rejects %j', async (request, code) => {
    const { idempotency } = createWorld().gateway();
    await expect(idempotency.open(request as never)).rejects.toMatchObject({ code });
  });

  it('an error of a listener does not break the request, and is logged', async () => {
    const logger = vi.fn();
    const { idempotency } = createWorld().gateway({
      onEvent: () => {
        throw new Error('listener');
      },
      logger,
    });
    expect(await idempotency.run('k', 'r', () => 1)).toMatchObject({ kind: 'executed' });
    expect(logger.mock.calls[0]).toEqual(['headgate: the listener onEvent failed', new Error('listener')]);
  });

  it('works with the timers of the platform', async () => {
    const idempotency = createIdempotency({ store: createMemoryClaimStore(), leaseMs: 300, waitMs: 5_000 });
    // Longer than the lease, so it must be renewed. The lease is longer than the pauses of a busy machine.
    const slow = () => new Promise<number>((resolve) => setTimeout(resolve, 500, 7));
    const results = await Promise.all([idempotency.run('k', 'r', slow), idempotency.run('k', 'r', slow)]);
    expect(results.map(({ kind }) => kind).sort()).toEqual(['executed', 'replayed']);
    await idempotency.close();
  });
});
