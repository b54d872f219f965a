import { describe, expect, it } from 'vitest';
import { isHeadgateError, notExecuted } from '../../src/index.ts';
import { settled } from '../support/fake-timers.ts';
import { createOperation, createWorld } from '../support/idempotency.ts';

const mail = { to: 'a@example.com', text: 'hello' };
const another = { ...mail, text: 'good bye' };

describe('run', () => {
  it('executes once, and replays the outcome', async () => {
    const { idempotency, events } = createWorld().gateway();
    const send = async () => ({ id: 'mail_1' });
    expect(await idempotency.run('k', mail, send)).toEqual({ kind: 'executed', value: { id: 'mail_1' }, kept: true });
    const never = () => expect.unreachable();
    expect(await idempotency.run('k', mail, never)).toEqual({ kind: 'replayed', value: { id: 'mail_1' } });
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed']);
    expect(events[1]).toEqual({ scope: '', key: 'k', type: 'completed', status: 'ok', valueKept: true });
  });

  it.each([['text'], [42], [null], [undefined], [''], [[1, { a: 2 }]], [false]])(
    'replays %j unchanged',
    async (value) => {
      const { idempotency } = createWorld().gateway();
      expect(await idempotency.run('k', '', () => value)).toMatchObject({ kind: 'executed', value });
      expect(await idempotency.run('k', '', () => 'other' as never)).toEqual({ kind: 'replayed', value });
    },
  );

  it('stores values with the serializer of the caller', async () => {
    const { idempotency } = createWorld().gateway();
    const codec = { serialize: (date: Date) => date.toISOString(), deserialize: (text: string) => new Date(text) };
    const date = new Date(86_400_000);
    await idempotency.run('k', '', () => date, codec);
    const replayed = await idempotency.run('k', '', () => new Date(0), codec);
    expect(replayed).toEqual({ kind: 'replayed', value: date });
  });

  it('I2: refuses another request with the same key at once, also while the original runs', async () => {
    const { idempotency, events } = createWorld().gateway();
    const { run, end } = createOperation<string>();
    const original = idempotency.run('k', mail, run);
    await settled();
    const refused = await idempotency.run('k', another, () => expect.unreachable());
    expect(refused).toMatchObject({
      kind: 'refused',
      reason: 'mismatch',
      fingerprint: expect.stringMatching(/^run1-json-/),
    });
    end('done');
    await original;
    expect(await idempotency.run('k', another, () => expect.unreachable())).toEqual(refused);
    expect(events.filter(({ type }) => type === 'refused')).toHaveLength(2);
  });

  it('I2: a key belongs to its scope', async () => {
    const { idempotency } = createWorld().gateway();
    let runs = 0;
    for (const scope of ['app_1', 'app_2', '']) {
      const result = await idempotency.run({ scope, key: 'k' }, mail, () => ++runs);
      expect(result).toMatchObject({ kind: 'executed', value: runs });
    }
    expect(runs).toBe(3);
  });

  it('I8: executes again after retention', async () => {
    const { timers, gateway } = createWorld();
    const { idempotency } = gateway({ retentionMs: 60_000 });
    let runs = 0;
    const next = () => idempotency.run('k', mail, () => ++runs);
    await next();
    await timers.advance(59_999);
    expect(await next()).toEqual({ kind: 'replayed', value: 1 });
    await timers.advance(1);
    expect(await next()).toMatchObject({ kind: 'executed', value: 2 });
  });

  it('I8: an outcome is stored for up to a year, if asked', async () => {
    const { timers, gateway } = createWorld();
    const yearMs = 31_536_000_000;
    const { idempotency } = gateway({ retentionMs: yearMs });
    const next = () => idempotency.run('k', mail, () => 'sent');
    await next();
    await timers.advance(yearMs - 1);
    expect(await next()).toEqual({ kind: 'replayed', value: 'sent' });
    await timers.advance(1);
    expect(await next()).toMatchObject({ kind: 'executed' });
  });

  it('I9: after a death, reject never executes again, however late the retry comes', async () => {
    const { timers, gateway } = createWorld();
    const settings = { retentionMs: 60_000, maxRunMs: 1 };
    let runs = 0;
    const never = (): Promise<never> => {
      runs++;
      return new Promise(() => {});
    };
    void gateway(settings).idempotency.run('k', mail, never);
    await timers.advance(600_000);
    const late = await gateway(settings).idempotency.run('k', mail, never);
    expect([late, runs]).toEqual([{ kind: 'refused', reason: 'orphan' }, 1]);
  });
});

describe('I6: what is stored', () => {
  it('rejects an operation that is not a function, and the key stays unused', async () => {
    const { idempotency } = createWorld().gateway();
    await expect(idempotency.run('k', mail, 'send' as never)).rejects.toThrow(
      /operation: must be a function, got "send"/,
    );
    expect(await idempotency.run('k', mail, () => 7)).toMatchObject({ kind: 'executed', value: 7 });
  });

  it.each<[string, unknown]>([
    ['a value without text', Object.create(null)],
    ['an error with a BigInt as message', Object.assign(new Error(), { message: 10n })],
    ['a symbol', Symbol('s')],
    ['an error whose name has no text', Object.assign(new Error('m'), { name: Object.create(null) })],
  ])('stores a failure that is %s, and the claim ends', async (_, thrown) => {
    const { idempotency } = createWorld().gateway();
    const run = () => idempotency.run('k', mail, () => Promise.reject(thrown));
    expect(await run()).toMatchObject({ kind: 'failed', replayed: false });
    expect(idempotency.held).toBe(0);
    expect(await run()).toMatchObject({ kind: 'failed', replayed: true, error: { code: 'kept_failure' } });
  });

  it('stores a failure after dispatch, and never executes it again', async () => {
    const { idempotency } = createWorld().gateway();
    const error = new RangeError('the provider broke');
    const run = () => idempotency.run('k', mail, () => Promise.reject(error));
    expect(await run()).toEqual({ kind: 'failed', error, replayed: false });
    const again = await run();
    expect(again).toMatchObject({
      kind: 'failed',
      replayed: true,
      error: { code: 'kept_failure', failure: 'RangeError', message: 'the provider broke' },
    });
  });

  it('stores a thrown value that is not an Error', async () => {
    const { idempotency } = createWorld().gateway();
    const run = () => idempotency.run('k', mail, () => Promise.reject('no'));
    await run();
    expect(await run()).toMatchObject({ error: { failure: 'string', message: 'no' } });
  });

  it('releases the key of an operation that is known not to have happened, and throws its error', async () => {
    const { idempotency, events } = createWorld().gateway();
    const refused = new Error('ECONNREFUSED');
    const run = idempotency.run('k', mail, () => Promise.reject(notExecuted(refused)));
    await expect(run).rejects.toBe(refused);
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'released']);
    expect(await idempotency.run('k', mail, () => 1)).toMatchObject({ kind: 'executed', value: 1 });
  });

  it('releases the key of an operation that called abandon, and returns its value', async () => {
    const { idempotency } = createWorld().gateway();
    const result = await idempotency.run('k', mail, ({ abandon }) => {
      abandon();
      return 429;
    });
    expect(result).toEqual({ kind: 'released', value: 429 });
    // The key stays with its request.
    expect(await idempotency.run('k', another, () => 1)).toMatchObject({ reason: 'mismatch' });
    expect(await idempotency.run('k', mail, () => 200)).toMatchObject({ kind: 'executed', value: 200 });
  });

  it('rejects dispatch after the operation called abandon', async () => {
    const { idempotency } = createWorld().gateway();
    const run = idempotency.run('k', mail, async ({ abandon, dispatch }) => {
      abandon();
      await dispatch();
    });
    await expect(run).rejects.toMatchObject({ code: 'not_dispatched' });
  });
});

describe('I6: explicit dispatch', () => {
  it('before dispatch, a failure releases the key and is thrown', async () => {
    const { idempotency, line } = createWorld().gateway();
    const error = new Error('invalid address');
    const options = { dispatch: 'explicit' } as const;
    await expect(idempotency.run('k', mail, () => Promise.reject(error), options)).rejects.toBe(error);
    expect(line.sent).toEqual(['begin', 'abandon']);
    expect(await idempotency.run('k', mail, () => 1, options)).toMatchObject({ kind: 'executed' });
  });

  it('after dispatch, a failure is stored', async () => {
    const { idempotency, line } = createWorld().gateway();
    const send = async ({ dispatch }: { dispatch: () => Promise<void> }) => {
      await dispatch();
      throw new Error('broken pipe');
    };
    const run = () => idempotency.run('k', mail, send, { dispatch: 'explicit' });
    expect(await run()).toMatchObject({ kind: 'failed', replayed: false });
    expect(await run()).toMatchObject({ kind: 'failed', replayed: true });
    expect(line.sent).toEqual(['begin', 'dispatch', 'complete', 'begin']);
  });

  it('sends the dispatch command once', async () => {
    const { idempotency, line } = createWorld().gateway();
    const send = async ({ dispatch }: { dispatch: () => Promise<void> }) => {
      await Promise.all([dispatch(), dispatch()]);
      await dispatch();
    };
    await idempotency.run('k', mail, send, { dispatch: 'explicit' });
    expect(line.sent).toEqual(['begin', 'dispatch', 'complete']);
  });

  it('stores the value of an operation that did not call dispatch, because its effect may have happened', async () => {
    const { idempotency } = createWorld().gateway();
    const run = () => idempotency.run('k', mail, () => 1, { dispatch: 'explicit' });
    expect(await run()).toMatchObject({ kind: 'executed' });
    expect(await run()).toMatchObject({ kind: 'replayed' });
  });
});

describe('I7: too large to store', () => {
  const run = (value: unknown, maxKeptBytes: number) => {
    const { idempotency, events } = createWorld().gateway({ maxKeptBytes });
    const once = () => idempotency.run('k', mail, () => value);
    return { once, events };
  };

  it('W_TOO_LARGE_IS_RELEASED: it is never executed again', async () => {
    const { once, events } = run('x'.repeat(99), 100);
    expect(await once()).toMatchObject({ kind: 'executed', value: 'x'.repeat(99), kept: true });
    expect(await once()).toEqual({ kind: 'refused', reason: 'not_kept', status: 'ok' });
    expect(events).toContainEqual(expect.objectContaining({ type: 'completed', valueKept: false }));
  });

  it.each([
    ['x'.repeat(98), 'replayed'],
    ['é'.repeat(49), 'replayed'],
    ['é'.repeat(50), 'refused'],
    ['漢'.repeat(33), 'refused'],
  ])('the limit counts UTF-8 bytes: %s', async (value, kind) => {
    const { once } = run(value, 100);
    await once();
    expect(await once()).toMatchObject({ kind });
  });

  it('stores an outcome that cannot be serialized without its value', async () => {
    const { once } = run({ big: 1n }, 100);
    expect(await once()).toMatchObject({ kind: 'executed' });
    expect(await once()).toEqual({ kind: 'refused', reason: 'not_kept', status: 'ok' });
  });
});

describe('invalid arguments', () => {
  it.each([
    [{ key: 'k' }, 'scope'],
    [{ scope: 's', key: 7 }, 'key'],
  ])('rejects %j', async (id, field) => {
    const { idempotency } = createWorld().gateway();
    await expect(idempotency.run(id as never, '', () => 1)).rejects.toMatchObject({ code: 'invalid_subject', field });
  });

  it('rejects an empty key, an unknown option and an invalid option', async () => {
    const { idempotency } = createWorld().gateway();
    const expectRejected = async (key: string, options: object, option: string) =>
      expect(await idempotency.run(key, '', () => 1, options).catch((error) => error)).toMatchObject({
        code: 'invalid_option',
        option,
      });
    await expectRejected('', {}, 'key');
    await expectRejected('k', { wait: 1 }, 'options.wait');
    await expectRejected('k', { waitMs: -1 }, 'waitMs');
    await expectRejected('k', { dispatch: 'never' }, 'dispatch');
    await expectRejected('k', { onOrphan: 'reconcile' }, 'reconcile');
  });

  it('claims nothing for a request without a fingerprint', async () => {
    const { idempotency, line } = createWorld().gateway();
    const error = await idempotency.run('k', new Map(), () => 1).catch((fault) => fault);
    expect(isHeadgateError(error, 'invalid_option')).toBe(true);
    expect(line.sent).toEqual([]);
  });
});
