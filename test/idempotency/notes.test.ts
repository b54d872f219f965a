import { describe, expect, it } from 'vitest';
import type { Reconciled } from '../../src/idempotency/index.ts';
import { settled } from '../support/fake-timers.ts';
import { createWorld, type Gateway, ID, type World } from '../support/idempotency.ts';

const RESULT = { status: 'ok', value: '1' };
const STEPS = ['dispatch', 'complete', 'abandon'] as const;

function noting(world: World, options: Parameters<World['gateway']>[0] = {}): Gateway {
  const gateway = world.gateway(options);
  gateway.line.notes = STEPS;
  return gateway;
}

async function claimIn({ idempotency }: Gateway, dispatch: 'explicit' | 'automatic' = 'explicit') {
  const opened = await idempotency.open({ ...ID, fingerprint: 'f', dispatch });
  if (opened.kind !== 'claimed') throw new Error(opened.kind);
  return opened.claim;
}

/** A claim whose owner died after the dispatch. */
async function orphaned(): Promise<World> {
  const world = createWorld();
  const dead = noting(world);
  await (await claimIn(dead)).dispatch({ id: 1 });
  dead.line.always = 'hung';
  await world.timers.advance(30_000);
  return world;
}

describe('notes of a claim', () => {
  it('travel with the command of their step, as JSON', async () => {
    const gateway = noting(createWorld());
    const first = await claimIn(gateway);
    expect(await first.dispatch({ id: 1 })).toEqual({ kind: 'ok' });
    expect(await first.complete(RESULT, { note: [2] })).toEqual({ kind: 'kept' });
    expect(gateway.line.noted).toEqual(['dispatch {"id":1}', 'complete [2]']);
  });

  it('noteOutcome sets the note of the completion; a later one, or a note of the call, replaces it', async () => {
    for (const [given, sent] of [
      [undefined, 'complete "second"'],
      ['own', 'complete "own"'],
    ]) {
      const gateway = noting(createWorld());
      const claim = await claimIn(gateway);
      claim.noteOutcome('first');
      claim.noteOutcome('second');
      await claim.complete(RESULT, { note: given });
      expect(gateway.line.noted).toEqual([sent]);
      expect(() => claim.noteOutcome('late')).toThrow(/note: must be set before the outcome is stored/);
    }
  });

  it('a release carries its own note, that of the outcome, or that of the dispatch, in this order', async () => {
    for (const [own, outcome, sent] of [
      ['own', 'outcome', 'abandon "own"'],
      [undefined, 'outcome', 'abandon "outcome"'],
      [undefined, undefined, 'abandon "dispatch"'],
    ]) {
      const gateway = noting(createWorld());
      const claim = await claimIn(gateway);
      await claim.dispatch('dispatch');
      if (outcome !== undefined) claim.noteOutcome(outcome);
      expect(await claim.abandon({ note: own })).toEqual({ kind: 'released' });
      expect(gateway.line.noted.at(-1)).toBe(sent);
    }
  });

  it('the release after a dispatch without a reply undoes its rows, unless the command never left', async () => {
    const world = createWorld();
    const gateway = noting(world);
    gateway.line.next('dispatch', 'unheard', 'unheard');
    expect(await (await claimIn(gateway)).dispatch({ id: 1 })).toMatchObject({ kind: 'unavailable' });
    await gateway.idempotency.idle();
    expect(gateway.line.noted).toEqual(['dispatch {"id":1}', 'dispatch {"id":1}', 'abandon {"id":1}']);
    expect(await gateway.idempotency.inspect(ID)).toMatchObject({ state: 'free' });
  });

  it('a completion without a reply is repeated with its note', async () => {
    const world = createWorld();
    const gateway = noting(world);
    const claim = await claimIn(gateway);
    gateway.line.next('complete', 'lost', 'lost');
    expect(await claim.complete(RESULT, { note: 'n' })).toMatchObject({ kind: 'pending' });
    await world.timers.advance(50);
    await gateway.idempotency.idle();
    expect(gateway.line.noted).toEqual(Array(3).fill('complete "n"'));
  });

  it('a note without room in memory gives the command up, so that no outcome is stored without its rows', async () => {
    const world = createWorld();
    const gateway = noting(world);
    const note = 'x'.repeat(1_000_000);
    gateway.line.always = 'lost';
    for (let i = 0; i < 9; i++) {
      gateway.line.always = 'ok';
      const opened = await gateway.idempotency.open({ ...ID, key: `${i}`, fingerprint: 'f', dispatch: 'explicit' });
      gateway.line.always = 'lost';
      if (opened.kind !== 'claimed') throw new Error(opened.kind);
      expect(await opened.claim.complete(RESULT, { note })).toMatchObject({ kind: 'pending' });
    }
    expect(gateway.idempotency.pending).toBe(8);
    expect(gateway.events.filter(({ type }) => type === 'given_up')).toEqual([
      { type: 'given_up', scope: ID.scope, key: '8', command: 'complete' },
    ]);
  });

  it('of an operation: dispatch(note) and noteOutcome(note) of its context', async () => {
    const gateway = noting(createWorld());
    const options = { dispatch: 'explicit' } as const;
    await gateway.idempotency.run(
      ID,
      'r',
      async ({ dispatch, noteOutcome }) => {
        await dispatch('d');
        noteOutcome('o');
      },
      options,
    );
    const failing = gateway.idempotency.run(
      { ...ID, key: 'other' },
      'r',
      async ({ noteOutcome }) => {
        noteOutcome('failed');
        throw new Error('before the dispatch');
      },
      options,
    );
    await expect(failing).rejects.toThrow('before the dispatch');
    expect(gateway.line.noted).toEqual(['dispatch "d"', 'complete "o"', 'abandon "failed"']);
  });
});

describe('a note that cannot be written', () => {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const NO_ROWS =
    /^note: the claim store has no rows.(dispatch|complete|abandon): see rows of createPostgresClaimStore/;

  it.each<[string, unknown, RegExp]>([
    ['NUL', { secret: 'a\0b' }, /must not contain NUL/],
    ['NUL in a name', { 'a\0b': 1 }, /must not contain NUL/],
    ['a lone surrogate', 'secret \ud800', /must not contain NUL or a lone surrogate/],
    ['NUL after backslashes', '\\\\\0', /must not contain NUL/],
    ['a function', () => 1, /must be a JSON value/],
    ['a bigint', 1n, /must be a JSON value/],
    ['a cycle', cyclic, /must be a JSON value/],
    ['more than 1 MiB', 'x'.repeat(1_048_575), /must be at most 1048576 bytes/],
    ['more than 1 MiB of UTF-8', 'ü'.repeat(524_288), /must be at most 1048576 bytes/],
  ])('%s is refused, and the claim is still open', async (_, note, message) => {
    const gateway = noting(createWorld());
    const claim = await claimIn(gateway);
    await expect(claim.dispatch(note)).rejects.toThrow(message);
    await expect(claim.complete(RESULT, { note })).rejects.toThrow(message);
    await expect(claim.abandon({ note })).rejects.toThrow(message);
    expect(() => claim.noteOutcome(note)).toThrow(expect.objectContaining({ code: 'invalid_option', option: 'note' }));
    await expect(claim.dispatch(note)).rejects.not.toThrow(/secret/);
    expect(gateway.line.sent).toEqual(['begin']);
    expect(await claim.dispatch('good')).toEqual({ kind: 'ok' });
    expect(await claim.complete(RESULT, { note: 'good' })).toEqual({ kind: 'kept' });
  });

  it('the texts of escapes, pairs of surrogates and 1 MiB are fine', async () => {
    const gateway = noting(createWorld());
    const claim = await claimIn(gateway);
    for (const note of ['\\u0000', '\\\\u0000 \\ud800', '🎉', 'x'.repeat(1_048_574)]) claim.noteOutcome(note);
    expect(await claim.complete(RESULT)).toEqual({ kind: 'kept' });
  });

  it('a key that PostgreSQL cannot store as a text takes no note', async () => {
    const gateway = noting(createWorld());
    const opened = await gateway.idempotency.open({ scope: 's', key: 'k\0', fingerprint: 'f', dispatch: 'explicit' });
    if (opened.kind !== 'claimed') throw new Error(opened.kind);
    await expect(opened.claim.dispatch(1)).rejects.toThrow(/scope or a key that contains NUL/);
    await opened.claim.abandon();
  });

  it('a store without rows takes none, for an operator either', async () => {
    const gateway = createWorld().gateway();
    const { idempotency } = gateway;
    const claim = await claimIn(gateway);
    await expect(claim.dispatch(1)).rejects.toThrow(NO_ROWS);
    await expect(claim.complete(RESULT, { note: 1 })).rejects.toThrow(NO_ROWS);
    await expect(claim.abandon({ note: 1 })).rejects.toThrow(NO_ROWS);
    expect(() => claim.noteOutcome(1)).toThrow(NO_ROWS);
    await expect(idempotency.release(ID, { note: 1 })).rejects.toThrow(NO_ROWS);
    await expect(idempotency.complete(ID, 1, { note: 1 })).rejects.toThrow(NO_ROWS);
    await expect(idempotency.completeWith(ID, RESULT, { note: 1 })).rejects.toThrow(NO_ROWS);
    await claim.abandon();
  });

  it('a note of dispatch needs that the owner dispatches', async () => {
    const gateway = noting(createWorld());
    const claim = await claimIn(gateway, 'automatic');
    await expect(claim.dispatch(1)).rejects.toThrow(/needs dispatch: 'explicit'/);
    expect(await claim.complete(RESULT, { note: 1 })).toEqual({ kind: 'kept' });
  });

  it('a bypassed operation takes none', async () => {
    const gateway = noting(createWorld(), { onStoreFailure: 'bypass' });
    gateway.line.always = 'lost';
    const refusals: unknown[] = [];
    const result = await gateway.idempotency.run(ID, 'r', async ({ dispatch, noteOutcome }) => {
      await dispatch();
      await dispatch(1).catch((error: unknown) => refusals.push(error));
      try {
        noteOutcome(1);
      } catch (error) {
        refusals.push(error);
      }
    });
    expect(result).toMatchObject({ kind: 'bypassed' });
    expect(refusals).toEqual(Array(2).fill(expect.objectContaining({ code: 'invalid_option', option: 'note' })));
  });
});

describe('an operator', () => {
  it('releases and completes with a note', async () => {
    const released = noting(await orphaned());
    expect(await released.idempotency.release(ID, { note: 'r' })).toBe('released');
    expect(released.line.noted).toEqual(['abandon "r"']);
    const completed = noting(await orphaned());
    expect(await completed.idempotency.complete(ID, 1, { note: 'c' })).toBe('completed');
    expect(completed.line.noted).toEqual(['complete "c"']);
    expect(await completed.idempotency.completeWith(ID, RESULT, { note: 'c' })).toBe('already_completed');
    await expect(completed.idempotency.complete(ID, 1, { more: 1 } as object)).rejects.toThrow(/more/);
    await expect(completed.idempotency.completeWith(ID, 'secret' as never)).rejects.toThrow(
      /^result: must be \{ status, value \}, as storedResponse\(\) returns, got string$/,
    );
  });
});

describe('reconcile of a job', () => {
  it('done: stores the outcome with its note', async () => {
    const { idempotency, line, events } = noting(await orphaned());
    const asked: unknown[] = [];
    const result = await idempotency.reconcileWith(ID, (about) => {
      asked.push({ ...about, signal: about.signal.aborted });
      return { done: true, result: RESULT, note: 'found' };
    });
    expect(result).toBe('completed');
    expect(asked).toEqual([{ ...ID, fingerprint: 'f', generation: 2, signal: false }]);
    expect(line.sent).toEqual(['inspect', 'begin', 'complete']);
    expect(line.noted).toEqual(['complete "found"']);
    expect(events).toContainEqual({ ...ID, type: 'reconciled', answer: 'done' });
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'completed', result: RESULT });
  });

  it('not done: frees the key with its note, and a retry executes', async () => {
    const { idempotency, line } = noting(await orphaned());
    expect(await idempotency.reconcileWith(ID, () => ({ done: false, note: 'gone' }))).toBe('released');
    expect(line.sent).toEqual(['inspect', 'begin', 'dispatch', 'abandon']);
    expect(line.noted).toEqual(['abandon "gone"']);
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'free' });
  });

  it.each<[string, () => unknown]>([
    ['unknown', () => 'unknown'],
    ['undefined', () => undefined],
    ['an error', () => Promise.reject(new Error('provider'))],
    ['another result than that of open', () => ({ done: true, result: 'sent' })],
    ['a note that cannot be written', () => ({ done: true, result: RESULT, note: 'a\0b' })],
  ])('%s: leaves the orphan as it was, and the next job asks again', async (_, answer) => {
    const { idempotency, line } = noting(await orphaned());
    expect(await idempotency.reconcileWith(ID, answer as () => Reconciled<typeof RESULT>)).toBe('unknown');
    expect(line.noted).toEqual([]);
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'in_progress', dispatched: true, leaseMs: 0 });
    expect(idempotency.held).toBe(0);
    expect(await idempotency.reconcileWith(ID, () => ({ done: true, result: RESULT }))).toBe('completed');
  });

  it('takes the value that run would have stored, and the callback of the options', async () => {
    const world = createWorld();
    const dead = world.gateway();
    void dead.idempotency.run(ID, 'r', () => new Promise(() => {}));
    await settled();
    dead.line.always = 'hung';
    await world.timers.advance(30_000);
    const { idempotency } = world.gateway({ reconcile: () => ({ done: true, result: { sent: 1 } }) });
    expect(await idempotency.reconcile(ID)).toBe('completed');
    expect(await idempotency.run(ID, 'r', () => expect.unreachable())).toEqual({
      kind: 'replayed',
      value: { sent: 1 },
    });
    const without = world.gateway().idempotency;
    await expect(without.reconcile(ID)).rejects.toThrow(/reconcile: must be a function/);
    await expect(without.reconcileWith(ID, 1 as never)).rejects.toThrow(/reconcile: must be a function/);
  });

  it('says why there is nothing to ask about', async () => {
    const world = createWorld();
    const owner = noting(world);
    const { idempotency } = noting(world);
    const reconcile = () => idempotency.reconcileWith(ID, () => expect.unreachable());
    expect(await reconcile()).toBe('absent');
    const claim = await claimIn(owner);
    expect(await reconcile()).toBe('in_progress');
    claim.leave();
    await world.timers.advance(30_000);
    expect(await reconcile()).toBe('not_dispatched');
    await (await claimIn(owner)).complete(RESULT);
    expect(await reconcile()).toBe('already_completed');
    await idempotency.close();
    await expect(reconcile()).rejects.toMatchObject({ code: 'closed' });
  });

  it('of two jobs, one asks; and the first outcome counts', async () => {
    const world = await orphaned();
    const [first, second] = [noting(world).idempotency, noting(world).idempotency];
    let answer = (_: Reconciled<typeof RESULT>): void => {};
    const asking = first.reconcileWith(ID, () => new Promise((resolve) => (answer = resolve)));
    await settled();
    expect(await second.reconcileWith(ID, () => expect.unreachable())).toBe('in_progress');
    // The lease is renewed while the callback runs.
    await world.timers.advance(90_000);
    expect(await second.reconcileWith(ID, () => expect.unreachable())).toBe('in_progress');
    await second.completeWith(ID, { status: 'ok', value: 'of a person' });
    answer({ done: true, result: RESULT });
    expect(await asking).toBe('already_completed');
  });

  it('of an orphan that was resolved since it was looked at, leaves everything as it is', async () => {
    const world = await orphaned();
    const { idempotency, line } = noting(world);
    line.next('begin', 'hung');
    const asking = idempotency.reconcileWith(ID, () => expect.unreachable());
    await settled();
    expect(await noting(world).idempotency.release(ID)).toBe('released');
    line.deliver();
    expect(await asking).toBe('changed');
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'free' });
  });

  it('rejects with the error of the store, and repeats the command in the background', async () => {
    const world = await orphaned();
    const { idempotency, line } = noting(world);
    line.next('inspect', 'lost');
    const done = () => idempotency.reconcileWith(ID, () => ({ done: true, result: RESULT, note: 'n' }));
    await expect(done()).rejects.toThrow('inspect was lost');
    line.next('begin', 'lost', 'lost');
    await expect(done()).rejects.toThrow('begin was lost');
    await world.timers.advance(1_000);
    line.next('complete', 'unheard');
    await expect(done()).rejects.toThrow('complete was not heard');
    await idempotency.idle();
    expect(line.noted).toEqual(['complete "n"', 'complete "n"']);
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'completed' });
  });

  it('not done, and the store fails: the release is repeated, and never forgets the dispatch', async () => {
    const world = await orphaned();
    const { idempotency, line } = noting(world);
    line.next('abandon', 'lost');
    const notDone = () => idempotency.reconcileWith(ID, () => ({ done: false, note: 'n' }));
    await expect(notDone()).rejects.toThrow('abandon was lost');
    await idempotency.idle();
    expect(line.noted).toEqual(['abandon "n"', 'abandon "n"']);
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'free' });
  });
});
