import { describe, expect, it } from 'vitest';
import type { GateEntry, Passage } from '../../src/gate/gate.ts';
import type { CapturedResponse } from '../../src/gate/recording.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import { createGate, createLimiter, type GateOptions } from '../../src/index.ts';
import { createWorld, ID } from '../support/idempotency.ts';

type Request = { readonly key?: string; readonly dispatch?: 'automatic' | 'explicit' };

function gateOf(options: Partial<GateOptions<Request>> = {}) {
  const world = createWorld();
  const { idempotency, line } = world.gateway();
  line.notes = ['dispatch', 'complete', 'abandon'];
  const gate = createGate<Request>({
    limiter: createLimiter({ limits: { allMethods: ['5/1m'] } }),
    account: () => 'a',
    route: () => 'r',
    idempotency,
    idempotent: async ({ key = '', dispatch = 'explicit' }) =>
      key === ''
        ? undefined
        : {
            scope: ID.scope,
            key,
            dispatch,
            fingerprint: await fingerprint({ method: 'POST', path: '/', body: (async function* () {})() }),
          },
    logger: false,
    ...options,
  });
  const pass = async (request: Request = { key: 'k' }, outer?: Passage): Promise<Passage> =>
    passageOf(await gate.enter(request, 'id', outer));
  return { gate, line, idempotency, pass };
}

function passageOf(entry: GateEntry): Passage {
  if (entry.kind !== 'proceed') throw new Error(String(entry.reply.body));
  return entry;
}

function store(passage: Passage, status: number) {
  const response: CapturedResponse = { status, fields: [], body: Buffer.from('x') };
  passage.settle({ status });
  return passage.recording?.store(response);
}

describe('notes of a passage', () => {
  it('travel with the dispatch, and with the outcome that the gate stores', async () => {
    const { pass, line } = gateOf();
    const passage = await pass();
    await passage.dispatch({ id: 1 });
    passage.noteOutcome({ state: 'sent' });
    expect(await store(passage, 202)).toBeUndefined();
    expect(line.noted).toEqual(['dispatch {"id":1}', 'complete {"state":"sent"}']);
  });

  it('travel with the release: of an error before the dispatch, and of abandon()', async () => {
    const { pass, line } = gateOf();
    const failed = await pass();
    failed.noteOutcome('failed');
    await store(failed, 422);
    const abandoned = await pass();
    await abandoned.dispatch('d');
    await abandoned.abandon();
    expect(line.noted).toEqual(['abandon "failed"', 'dispatch "d"', 'abandon "d"']);
  });

  it('a note that cannot be written is refused, and the key of the error response is released', async () => {
    const { pass, line } = gateOf();
    const passage = await pass();
    await expect(passage.dispatch('a\0b')).rejects.toMatchObject({ code: 'invalid_option', option: 'note' });
    expect(() => passage.noteOutcome('a\0b')).toThrow(/note: must not contain NUL/);
    expect(await store(passage, 500)).toBeUndefined();
    expect(line.sent).toEqual(['begin', 'abandon']);
    const again = await pass();
    await expect(again.dispatch('a\0b')).rejects.toThrow(/NUL/);
    await again.dispatch('good');
    expect(line.noted).toEqual(['dispatch "good"']);
    await again.abandon();
  });

  it('a request without a claim takes none; without a note, dispatch() resolves as before', async () => {
    const { pass } = gateOf();
    const passage = await pass({});
    await passage.dispatch();
    await expect(passage.dispatch(1)).rejects.toThrow(
      /needs a request with an idempotency key and dispatch: 'explicit'/,
    );
    expect(() => passage.noteOutcome(1)).toThrow(/needs a request with an idempotency key/);
    const automatic = await pass({ key: 'k', dispatch: 'automatic' });
    await expect(automatic.dispatch(1)).rejects.toThrow(/dispatch: 'explicit'/);
    automatic.noteOutcome(1);
    await store(automatic, 200);
  });

  it('go to the gate that holds the claim, from a gate behind it', async () => {
    const outer = gateOf();
    const passage = await outer.pass();
    const inner = await gateOf().pass({}, passage);
    await inner.dispatch('d');
    inner.noteOutcome('o');
    await store(passage, 200);
    expect(outer.line.noted).toEqual(['dispatch "d"', 'complete "o"']);
  });
});
