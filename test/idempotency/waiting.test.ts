import { describe, expect, it } from 'vitest';
import { settled } from '../support/fake-timers.ts';
import { createOperation, createWorld } from '../support/idempotency.ts';

describe('I5: duplicates of a running request', () => {
  it('50 at once: one execution, one result for every caller', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const operation = createOperation<string>();
    const all = Promise.all(Array.from({ length: 50 }, () => idempotency.run('k', 'r', operation.run)));
    await settled();
    operation.end('m1');
    const results = await all;
    expect(operation.runs).toBe(1);
    expect(results.filter(({ kind }) => kind === 'executed')).toHaveLength(1);
    expect(results.every((result) => 'value' in result && result.value === 'm1')).toBe(true);
    // Each duplicate looks when it arrives, after it has joined the waiters, and when the original has completed.
    expect(line.sent.filter((name) => name === 'begin').length).toBeLessThanOrEqual(1 + 49 * 3);
    expect(timers.waiting).toBe(0);
  });

  it('is woken at once if the original is in the same process', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, events } = gateway();
    const operation = createOperation<number>();
    const original = idempotency.run('k', 'r', operation.run);
    const duplicate = idempotency.run('k', 'r', operation.run);
    await timers.advance(3_000);
    const before = timers.now();
    expect(idempotency.waiting).toBe(1);
    operation.end(7);
    expect(await duplicate).toEqual({ kind: 'replayed', value: 7 });
    expect(await original).toMatchObject({ kind: 'executed', value: 7 });
    expect(timers.now()).toBe(before);
    expect(idempotency.waiting).toBe(0);
    expect(events).toContainEqual({ scope: '', key: 'k', type: 'waited', waitedMs: 3_000 });
  });

  it('polls with growing pauses if the original is in another process', async () => {
    const { timers, gateway } = createWorld();
    const [here, there] = [gateway(), gateway()];
    const operation = createOperation<number>();
    void there.idempotency.run('k', 'r', operation.run);
    const duplicate = here.idempotency.run('k', 'r', operation.run);
    await timers.advance(5_000);
    const looks = here.line.sent.length;
    expect(looks).toBeGreaterThan(10);
    expect(looks).toBeLessThan(20);
    operation.end(7);
    await timers.advance(500);
    expect(await duplicate).toEqual({ kind: 'replayed', value: 7 });
    expect(operation.runs).toBe(1);
  });

  it('is refused after waitMs, with the time to retry', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency } = gateway({ waitMs: 2_000 });
    const operation = createOperation<number>();
    const original = idempotency.run('k', 'r', operation.run);
    let refused: unknown;
    void idempotency.run('k', 'r', operation.run).then((result) => {
      refused = result;
    });
    await timers.advance(1_999);
    expect(refused).toBeUndefined();
    await timers.advance(1);
    expect(refused).toEqual({ kind: 'refused', reason: 'in_progress', retryAfterMs: 1_000 });
    operation.end(1);
    await original;
    expect(timers.waiting).toBe(0);
  });

  it('with waitMs 0, is refused at once', async () => {
    const { gateway } = createWorld();
    const { idempotency, line, events } = gateway({ waitMs: 0 });
    const operation = createOperation<number>();
    void idempotency.run('k', 'r', operation.run);
    expect(await idempotency.run('k', 'r', operation.run)).toMatchObject({ kind: 'refused', reason: 'in_progress' });
    expect(line.sent).toEqual(['begin', 'begin']);
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'refused']);
    operation.end(1);
  });

  it('executes when the original releases the key', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency } = gateway();
    const end = createOperation<void>();
    const limited = idempotency.run('k', 'r', async ({ abandon }) => {
      await end.run();
      abandon();
      return 429;
    });
    const duplicates = [1, 2, 3].map((n) => idempotency.run('k', 'r', () => 200 + n));
    await timers.advance(1_000);
    end.end();
    expect(await limited).toEqual({ kind: 'released', value: 429 });
    const results = await Promise.all(duplicates);
    expect(results.filter(({ kind }) => kind === 'executed')).toHaveLength(1);
    expect(new Set(results.map((result) => 'value' in result && result.value)).size).toBe(1);
    expect(timers.waiting).toBe(0);
  });

  it('I9: takes over when the lease of a dead owner expires', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency } = gateway({ waitMs: 10_000 });
    const dead = gateway();
    dead.line.always = 'ok';
    const id = { scope: '', key: 'k' };
    const opened = await dead.idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit', leaseMs: 5_000 });
    if (opened.kind !== 'claimed') return expect.unreachable();
    opened.claim.leave();
    const waiting = idempotency.open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    await timers.advance(4_999);
    expect(store.inspect(id)).toMatchObject({ generation: 1 });
    await timers.advance(1);
    expect(await waiting).toMatchObject({ kind: 'claimed', claim: { generation: 2, inherited: false } });
  });

  it('stops waiting when the signal of its caller is aborted', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency } = gateway();
    const operation = createOperation<number>();
    const original = idempotency.run('k', 'r', operation.run);
    const caller = new AbortController();
    const duplicate = idempotency.run('k', 'r', operation.run, { signal: caller.signal });
    await timers.advance(100);
    caller.abort();
    expect(await duplicate).toEqual({ kind: 'refused', reason: 'aborted' });
    expect(await idempotency.run('k', 'r', operation.run, { signal: caller.signal })).toMatchObject({
      reason: 'aborted',
    });
    operation.end(1);
    expect(await original).toMatchObject({ kind: 'executed' });
    expect(timers.waiting).toBe(0);
  });

  it('releases the claim of a caller that stopped waiting', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency, line } = gateway();
    line.next('begin', 'hung');
    const caller = new AbortController();
    const run = idempotency.run('k', 'r', () => expect.unreachable(), { signal: caller.signal });
    await settled();
    caller.abort();
    expect(await run).toEqual({ kind: 'refused', reason: 'aborted' });
    expect(line.sent).toEqual(['begin']);
    line.deliver();
    await settled();
    expect(line.sent).toEqual(['begin', 'abandon']);
    expect(store.inspect({ scope: '', key: 'k' })).toMatchObject({ state: 'free' });
    expect([idempotency.held, idempotency.pending, timers.waiting]).toEqual([0, 0, 0]);
  });

  it('I11: an aborted signal does not end the operation', async () => {
    const { idempotency } = createWorld().gateway();
    const operation = createOperation<number>();
    const caller = new AbortController();
    const run = idempotency.run('k', 'r', operation.run, { signal: caller.signal });
    await settled();
    caller.abort();
    operation.end(1);
    expect(await run).toMatchObject({ kind: 'executed', kept: true });
    expect(await idempotency.run('k', 'r', operation.run)).toEqual({ kind: 'replayed', value: 1 });
  });
});
