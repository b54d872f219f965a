import { describe, expect, it } from 'vitest';
import { ResultUnavailableError, ScopeFullError, StoreFullError, StoreUnavailableError } from '../../src/index.ts';
import { settled } from '../support/fake-timers.ts';
import { LineError } from '../support/faulty-claims.ts';
import { createOperation, createWorld } from '../support/idempotency.ts';

const id = { scope: '', key: 'k' };
const EXPLICIT = { dispatch: 'explicit' } as const;
const never = () => expect.unreachable();

describe('I12: the store is unavailable', () => {
  it('refuse: nothing is executed', async () => {
    const { idempotency, line, events } = createWorld().gateway();
    line.always = 'lost';
    expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'unavailable', error: expect.any(LineError) });
    expect(events).toContainEqual({ ...id, type: 'unavailable', command: 'begin', error: expect.any(LineError) });
  });

  it('bypass: executes without protection, and reports it', async () => {
    const { idempotency, line, events } = createWorld().gateway({ onStoreFailure: 'bypass' });
    line.always = 'lost';
    const run = () =>
      idempotency.run('k', 'r', async ({ dispatch, generation, inherited, signal }) => {
        await dispatch();
        return { generation, inherited, aborted: signal.aborted };
      });
    expect(await run()).toEqual({
      kind: 'bypassed',
      value: { generation: undefined, inherited: false, aborted: false },
    });
    expect(events).toContainEqual({ ...id, type: 'bypassed', error: expect.any(LineError) });
  });

  it('bypass: an error of the operation is thrown', async () => {
    const { idempotency, line } = createWorld().gateway({ onStoreFailure: 'bypass' });
    line.always = 'lost';
    await expect(idempotency.run('k', 'r', () => Promise.reject(new Error('x')))).rejects.toThrow('x');
  });

  it('bypass does not apply to a dispatch without a reply, because the dispatch may be recorded', async () => {
    const { idempotency, line } = createWorld().gateway({ onStoreFailure: 'bypass' });
    line.next('dispatch', 'lost', 'unheard');
    const result = await idempotency.run('k', 'r', async ({ dispatch }) => dispatch(), EXPLICIT);
    expect(result).toMatchObject({ kind: 'unavailable' });
  });

  it('a full store has done nothing: no command is repeated, and nothing is released', async () => {
    const { store, timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    line.begin = () => {
      line.sent.push('begin');
      throw new StoreFullError(1);
    };
    expect(await idempotency.run('k', 'r', never)).toMatchObject({
      kind: 'unavailable',
      error: { code: 'store_full' },
    });
    expect(line.sent).toEqual(['begin']);
    expect([idempotency.pending, timers.waiting, store.stats().keys]).toEqual([0, 0, 0]);
  });

  it('a begin that was never sent is not repeated, and nothing is released', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const error = new StoreUnavailableError('the client is not connected', { sent: false });
    line.begin = () => {
      line.sent.push('begin');
      throw error;
    };
    expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'unavailable', error });
    expect(line.sent).toEqual(['begin']);
    expect([idempotency.pending, timers.waiting]).toEqual([0, 0]);
  });

  it('a begin whose first try was lost and whose second was never sent is released', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const begin = line.begin.bind(line);
    line.next('begin', 'unheard');
    line.begin = (id, command) => {
      if (line.sent.length === 0) return begin(id, command);
      throw new StoreUnavailableError('the client is not connected', { sent: false });
    };
    expect(await idempotency.run('k', 'r', never)).toMatchObject({ kind: 'unavailable' });
    await timers.advance(0);
    expect(line.sent).toEqual(['begin', 'abandon']);
  });

  it('a dispatch that was never sent leaves no mark: its claim is released while the lease lasts, not for a day', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway({ leaseMs: 10_000 });
    line.dispatch = () => {
      throw new StoreUnavailableError('the client is not connected', { sent: false });
    };
    line.always = 'ok';
    line.next('abandon', ...Array.from({ length: 100 }, () => 'lost' as const));
    const result = await idempotency.run('k', 'r', async ({ dispatch }) => dispatch(), EXPLICIT);
    expect(result).toMatchObject({ kind: 'unavailable' });
    await timers.advance(30_000);
    expect([idempotency.pending, timers.waiting]).toEqual([0, 0]);
  });

  it('I4, I12: a completed operation whose result cannot be read now never runs again, also with bypass', async () => {
    const { gateway } = createWorld();
    const { idempotency, line, events } = gateway({ onStoreFailure: 'bypass' });
    const error = new ResultUnavailableError('the connection is busy');
    line.begin = () => {
      throw error;
    };
    expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'unavailable', error });
    expect(events).toEqual([{ ...id, type: 'unavailable', command: 'begin', error }]);
    expect(idempotency.pending).toBe(0);
  });

  it('P2: an outcome that came second is not shown if the first one cannot be read', async () => {
    const { gateway } = createWorld();
    const { idempotency, line } = gateway();
    line.complete = () => {
      throw new ResultUnavailableError('the connection is busy');
    };
    expect(await idempotency.run('k', 'r', () => 'own')).toMatchObject({ kind: 'unavailable' });
    expect(idempotency.pending).toBe(0);
  });
});

describe('a scope with too many keys', () => {
  it.each(['refuse', 'bypass'] as const)(
    'I13: the request is refused, with onStoreFailure %s too, because the store is well; no command is repeated',
    async (onStoreFailure) => {
      const { timers, gateway } = createWorld();
      const { idempotency, line } = gateway({ onStoreFailure });
      line.begin = () => {
        line.sent.push('begin');
        throw new ScopeFullError(1, 5_000);
      };
      const refused = { kind: 'refused', reason: 'too_many_keys', retryAfterMs: 5_000 };
      expect(await idempotency.run('k', 'r', never)).toEqual(refused);
      expect(line.sent).toEqual(['begin']);
      expect([idempotency.pending, timers.waiting]).toEqual([0, 0]);
    },
  );
});

describe('no reply to begin', () => {
  it.each(['lost', 'unheard'] as const)(
    '%s once: the command is repeated with the same token, and the caller notices nothing',
    async (fate) => {
      const { store, gateway } = createWorld();
      const { idempotency, line } = gateway();
      line.next('begin', fate);
      expect(await idempotency.run('k', 'r', () => 1)).toMatchObject({ kind: 'executed', kept: true });
      expect(line.sent).toEqual(['begin', 'begin', 'complete']);
      expect(store.inspect(id)).toMatchObject({ generation: 1 });
    },
  );

  it('late once: the command is repeated, and the caller notices nothing', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency, line } = gateway();
    line.begin = (...args) => {
      line.sent.push('begin');
      return line.sent.length === 1 ? { kind: 'late' } : store.begin(...args);
    };
    expect(await idempotency.run('k', 'r', () => 1)).toMatchObject({ kind: 'executed' });
    expect(timers.waiting).toBe(0);
  });

  it('late twice: the store has done nothing, so nothing is released', async () => {
    const { idempotency, line } = createWorld().gateway();
    line.begin = () => {
      line.sent.push('begin');
      return { kind: 'late' };
    };
    expect(await idempotency.run('k', 'r', never)).toMatchObject({ error: { code: 'store_unavailable' } });
    expect(line.sent).toEqual(['begin', 'begin']);
  });

  it('W_NO_BACKGROUND_RELEASE: a claim that was made is released in the background until that is acknowledged', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency, line, events } = gateway();
    line.next('begin', 'unheard', 'lost');
    line.next('abandon', 'lost', 'lost');
    expect(await idempotency.run('k', 'r', never)).toMatchObject({ kind: 'unavailable' });
    await settled();
    expect(idempotency.pending).toBe(1);
    expect(store.inspect(id)).toMatchObject({ state: 'in_progress', dispatched: true });
    await timers.advance(1_000);
    expect(idempotency.pending).toBe(0);
    expect(store.inspect(id)).toMatchObject({ state: 'free' });
    const retries = events.flatMap((event) => (event.type === 'retrying' ? [event.tries] : []));
    expect(retries).toEqual([1, 2]);
    expect(timers.waiting).toBe(0);
  });
});

describe('no reply to dispatch', () => {
  it('once: the command is repeated with the same token', async () => {
    const { idempotency, line } = createWorld().gateway();
    line.next('dispatch', 'unheard');
    const result = await idempotency.run('k', 'r', async ({ dispatch }) => dispatch(), EXPLICIT);
    expect(result).toMatchObject({ kind: 'executed' });
    expect(line.sent).toEqual(['begin', 'dispatch', 'dispatch', 'complete']);
  });

  it.each(['lost', 'unheard', 'late'] as const)(
    'W_EFFECT_WITHOUT_REPLY: %s twice, the effect does not happen, and the key is free again',
    async (fate) => {
      const { timers, store, gateway } = createWorld();
      const { idempotency, line } = gateway();
      line.next('dispatch', fate, fate);
      line.next('abandon', 'lost', 'lost', 'lost');
      let effects = 0;
      const send = async ({ dispatch }: { dispatch: () => Promise<void> }) => {
        await dispatch();
        effects++;
      };
      expect(await idempotency.run('k', 'r', send, EXPLICIT)).toMatchObject({ kind: 'unavailable' });
      expect(effects).toBe(0);
      expect(idempotency.held).toBe(0);
      await timers.advance(1_000);
      line.deliver();
      expect(store.inspect(id)).toMatchObject({ state: 'free', dispatched: false });
      expect(await idempotency.run('k', 'r', send, EXPLICIT)).toMatchObject({ kind: 'executed' });
      expect(effects).toBe(1);
      expect(timers.waiting).toBe(0);
    },
  );

  it('the result of an operation that ignores the failed dispatch does not count', async () => {
    const { idempotency, line } = createWorld().gateway();
    line.next('dispatch', 'lost', 'lost');
    const result = await idempotency.run('k', 'r', ({ dispatch }) => dispatch().catch(() => 'sent'), EXPLICIT);
    expect(result).toMatchObject({ kind: 'unavailable' });
  });

  it('a reply that arrives after the lease does not count: dispatch is repeated', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency, line } = gateway({ leaseMs: 1_000, onOrphan: 'reexecute' });
    line.next('dispatch', 'hung', 'ok');
    line.next('extend', 'hung');
    let effects = 0;
    const run = idempotency.run(
      'k',
      'r',
      async ({ dispatch }) => {
        await dispatch();
        effects++;
      },
      EXPLICIT,
    );
    await timers.advance(1_000);
    line.deliver();
    expect(await run).toMatchObject({ kind: 'executed' });
    expect(line.sent).toEqual(['begin', 'dispatch', 'extend', 'dispatch', 'complete']);
    expect([effects, store.inspect(id)?.state]).toEqual([1, 'completed']);
  });

  it('a claim whose reply arrived after its lease is dispatched again if it may have been taken over', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway({ leaseMs: 1_000, onOrphan: 'reexecute' });
    line.next('begin', 'unheard', 'hung');
    const run = idempotency.run('k', 'r', () => 1);
    await timers.advance(1_000);
    line.deliver();
    expect(await run).toMatchObject({ kind: 'executed' });
    expect(line.sent).toEqual(['begin', 'begin', 'dispatch', 'complete']);
  });
});

describe('I12: the store fails after the operation', () => {
  it.each(['lost', 'unheard', 'late'] as const)(
    'W_NO_BACKGROUND_SETTLE: %s, the caller gets its value, which is stored in the background',
    async (fate) => {
      const { timers, store, gateway } = createWorld();
      const { idempotency, line } = gateway();
      line.next('complete', fate, 'lost', 'lost', 'lost');
      expect(await idempotency.run('k', 'r', () => 1)).toEqual({ kind: 'executed', value: 1, kept: false });
      await settled();
      expect([idempotency.held, idempotency.pending]).toEqual([0, 1]);
      await timers.advance(2_000);
      line.deliver();
      expect(idempotency.pending).toBe(0);
      expect(store.inspect(id)).toMatchObject({ state: 'completed' });
      expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'replayed', value: 1 });
      expect(timers.waiting).toBe(0);
    },
  );

  it('retries for as long as the record could be stored, and no longer', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line, events } = gateway({ retentionMs: 3_600_000 });
    line.next('begin', 'ok');
    line.always = 'lost';
    expect(await idempotency.run('k', 'r', () => 1)).toMatchObject({ kind: 'executed', kept: false });
    await timers.advance(3_590_000);
    expect(idempotency.pending).toBe(1);
    await timers.advance(20_000);
    expect(idempotency.pending).toBe(0);
    expect(events.at(-1)).toEqual({ ...id, type: 'given_up', command: 'complete' });
    expect(timers.waiting).toBe(0);
  });

  it('wakes waiting duplicates when the outcome is finally stored', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const operation = createOperation<number>();
    const original = idempotency.run('k', 'r', operation.run);
    const duplicate = idempotency.run('k', 'r', operation.run);
    await settled();
    line.next('complete', 'lost', 'lost');
    operation.end(7);
    expect(await original).toMatchObject({ kind: 'executed', kept: false });
    await timers.advance(50);
    expect(await duplicate).toEqual({ kind: 'replayed', value: 7 });
  });

  it.each(['reexecute', 'reconcile'] as const)('%s: the caller is asked to retry', async (onOrphan) => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway({ onOrphan, reconcile: () => 'unknown' });
    line.next('complete', 'unheard');
    expect(await idempotency.run('k', 'r', () => 1)).toMatchObject({ kind: 'unavailable' });
    await timers.advance(1_000);
    expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'replayed', value: 1 });
  });

  it('a release is retried in the background too', async () => {
    const { timers, store, gateway } = createWorld();
    const { idempotency, line } = gateway();
    line.next('abandon', 'lost', 'lost');
    const run = idempotency.run('k', 'r', ({ abandon }) => {
      abandon();
      return 429;
    });
    expect(await run).toEqual({ kind: 'released', value: 429 });
    await timers.advance(50);
    expect(store.inspect(id)).toMatchObject({ state: 'free' });
    expect(timers.waiting).toBe(0);
  });

  it('a release that has no effect any more is given up', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway({ leaseMs: 10_000 });
    line.always = 'lost';
    const opened = idempotency.open({ ...id, fingerprint: 'f', ...EXPLICIT });
    expect(await opened).toMatchObject({ kind: 'unavailable' });
    await timers.advance(30_000);
    expect([idempotency.pending, timers.waiting]).toEqual([0, 0]);
  });

  it('waiting values are limited: above the limit, outcomes are stored without their values', async () => {
    const { timers, gateway } = createWorld(1_073_741_824);
    const { idempotency, line } = gateway({ maxKeptBytes: 100 * 1_048_576 });
    const large = 'x'.repeat(40 * 1_048_576);
    const codec = { serialize: (text: string) => text, deserialize: (text: string) => text };
    line.next('complete', 'lost', 'lost', 'lost', 'lost');
    for (const key of ['a', 'b']) await idempotency.run(key, 'r', () => large, codec);
    await timers.advance(1_000);
    expect(await idempotency.run('a', 'r', never, codec)).toMatchObject({ kind: 'replayed' });
    expect(await idempotency.run('b', 'r', never, codec)).toMatchObject({ kind: 'refused', reason: 'not_kept' });
  });

  it('waiting values are limited per scope, so that one application leaves room for the others', async () => {
    const { timers, gateway } = createWorld(1_073_741_824);
    const { idempotency, line } = gateway({ maxKeptBytes: 100 * 1_048_576 });
    const large = 'x'.repeat(6 * 1_048_576);
    const codec = { serialize: (text: string) => text, deserialize: (text: string) => text };
    line.always = 'lost';
    const ids = ['a', 'b', 'c'].flatMap((scope) => ['1', '2'].map((key) => ({ scope, key })));
    line.next('begin', ...ids.map(() => 'ok' as const));
    for (const each of ids) await idempotency.run(each, 'r', () => large, codec);
    line.always = 'ok';
    await timers.advance(10_000);
    const kinds = [];
    for (const each of ids) kinds.push((await idempotency.run(each, 'r', never, codec)).kind);
    expect(kinds).toEqual(['replayed', 'refused', 'replayed', 'refused', 'replayed', 'refused']);
  });

  it('the large values of one scope are sent one by one and in their order', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency, line } = gateway();
    const operation = () => 'x'.repeat(10_000);
    const complete = line.complete.bind(line);
    const keys: string[] = [];
    let isDown = true;
    line.complete = (each, command) => {
      if (isDown) throw new LineError();
      keys.push(each.key);
      return complete(each, command);
    };
    for (const key of ['1', '2', '3']) await idempotency.run({ scope: 'a', key }, 'r', operation);
    isDown = false;
    line.next('complete', 'hung');
    await timers.advance(1_000);
    expect(keys).toEqual(['1']);
    line.deliver();
    await timers.advance(0);
    expect(keys).toEqual(['1', '2', '3']);
    expect(idempotency.pending).toBe(0);
  });
});

describe('P2: one result for every caller', () => {
  it('W_LOSER_ANSWERS_ITS_OWN: the owner that completes second returns the first outcome', async () => {
    const world = createWorld();
    const [slow, fast] = [world.gateway(), world.gateway()];
    const options = { onOrphan: 'reexecute' } as const;
    const operation = createOperation<string>();
    const stale = slow.idempotency.run('k', 'r', operation.run, options);
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    expect(await fast.idempotency.run('k', 'r', () => 'second', options)).toMatchObject({ kind: 'executed' });
    operation.end('first');
    expect(await stale).toEqual({ kind: 'replayed', value: 'second' });
  });

  it('an owner that fails second returns the first outcome', async () => {
    const world = createWorld();
    const [slow, fast] = [world.gateway(), world.gateway()];
    const options = { onOrphan: 'reexecute' } as const;
    const operation = createOperation<string>();
    const stale = slow.idempotency.run('k', 'r', operation.run, options);
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    await fast.idempotency.run('k', 'r', () => 'second', options);
    operation.fail(new Error('x'));
    expect(await stale).toEqual({ kind: 'replayed', value: 'second' });
  });

  it.each([
    ['then dispatches', async (dispatch: () => Promise<void>) => dispatch().then(() => 'first')],
    ['then fails', async () => Promise.reject(new Error('x'))],
  ])('an owner that lost its claim before dispatch and %s returns the first outcome', async (_, finish) => {
    const world = createWorld();
    const [slow, fast] = [world.gateway(), world.gateway()];
    const pause = createOperation<void>();
    const stale = slow.idempotency.run(
      'k',
      'r',
      async ({ dispatch }) => {
        await pause.run();
        return finish(dispatch);
      },
      EXPLICIT,
    );
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    await fast.idempotency.run('k', 'r', () => 'second');
    pause.end();
    expect(await stale).toEqual({ kind: 'replayed', value: 'second' });
    expect([slow.idempotency.held, world.timers.waiting]).toEqual([0, 0]);
  });

  it('the outcome of an owner that lost its claim before dispatch is not stored', async () => {
    const world = createWorld();
    const [slow, fast] = [world.gateway(), world.gateway()];
    const pause = createOperation<string>();
    const stale = slow.idempotency.run('k', 'r', pause.run, EXPLICIT);
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    const operation = createOperation<string>();
    const owner = fast.idempotency.run('k', 'r', operation.run);
    await world.timers.advance(5_000);
    pause.end('first');
    expect(await stale).toEqual({ kind: 'refused', reason: 'lost' });
    operation.end('second');
    expect(await owner).toMatchObject({ kind: 'executed', value: 'second', kept: true });
  });

  it('an operation that stops because its claim was taken over leaves the outcome to the new owner', async () => {
    const world = createWorld();
    const [slow, fast] = [world.gateway(), world.gateway()];
    const options = { onOrphan: 'reexecute' } as const;
    const stopped = slow.idempotency.run(
      'k',
      'r',
      ({ signal }) => new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      options,
    );
    await settled();
    slow.line.always = 'lost';
    await world.timers.advance(30_000);
    slow.line.always = 'ok';
    const operation = createOperation<string>();
    const owner = fast.idempotency.run('k', 'r', operation.run, options);
    await world.timers.advance(10_000);
    expect(await stopped).toEqual({ kind: 'refused', reason: 'lost' });
    operation.end('theirs');
    expect(await owner).toMatchObject({ kind: 'executed', kept: true });
    expect([slow.idempotency.held, world.timers.waiting]).toEqual([0, 0]);
  });
});

describe('W_RELEASE_ON_DISCONNECT', () => {
  it('I11: the client disconnects after the request was sent: its retry gets the outcome', async () => {
    const { idempotency, line } = createWorld().gateway();
    const operation = createOperation<string>();
    const client = new AbortController();
    const gone = idempotency.run('k', 'r', operation.run, { signal: client.signal });
    await settled();
    client.abort();
    const retry = idempotency.run('k', 'r', operation.run);
    await settled();
    operation.end('sent');
    expect(await retry).toEqual({ kind: 'replayed', value: 'sent' });
    await gone;
    expect(operation.runs).toBe(1);
    expect(line.sent).not.toContain('abandon');
  });
});
