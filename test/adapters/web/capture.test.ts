import { describe, expect, it } from 'vitest';
import { captureAnswer } from '../../../src/adapters/web/capture.ts';
import type { CapturedResponse } from '../../../src/gate/recording.ts';
import type { Reply } from '../../../src/http/problem.ts';
import { eventually, pause } from '../../support/raw-http.ts';

const REPLACEMENT: Reply = { status: 409, headers: {}, body: 'instead' };

/** Recording that is done when the test says so. */
function keeping({ maxBytes = 1_000, storeBeforeSending = false, instead = undefined as Reply | undefined } = {}) {
  const kept: CapturedResponse[] = [];
  let done = () => {};
  const until = new Promise<void>((resolve) => {
    done = resolve;
  });
  const keep = async (response: CapturedResponse) => {
    kept.push(response);
    await until;
    return instead;
  };
  return { maxBytes, storeBeforeSending, store: keep, kept, done };
}

/** A stream, and its handle: what is enqueued comes when the test says so. */
function source() {
  let controller = undefined as unknown as ReadableStreamDefaultController<unknown>;
  let isCancelled = false;
  const stream = new ReadableStream<unknown>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      isCancelled = true;
    },
  });
  const say = (text: string) => controller.enqueue(new TextEncoder().encode(text));
  return { stream: stream as ReadableStream<Uint8Array>, controller, say, isCancelled: () => isCancelled };
}

const answer = (body: BodyInit | null, init?: ResponseInit) => new Response(body, init);
const textOf = (bytes: unknown) => (bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : undefined);
type BodyInit = ConstructorParameters<typeof Response>[0];

/** Reads on as the test wants, one piece at a time. */
function reading(body: unknown) {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const seen = { text: '', isEnded: false, error: undefined as unknown };
  const all = (async () => {
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        seen.text += textOf(value);
      }
      seen.isEnded = true;
    } catch (error) {
      seen.error = error;
    }
  })();
  return { seen, all, reader };
}

describe('an answer that is in memory', () => {
  it.each<[string, () => BodyInit, string]>([
    ['text', () => 'ok ✓', 'ok ✓'],
    ['no bytes', () => '', ''],
    ['bytes', () => new Uint8Array([111, 107]), 'ok'],
    ['a blob', () => new Blob(['o', 'k']), 'ok'],
    ['a form', () => new URLSearchParams({ a: '1' }), 'a=1'],
    [
      'a stream that has it all',
      () =>
        new ReadableStream({
          start(controller) {
            for (const piece of ['o', '', 'k']) controller.enqueue(new TextEncoder().encode(piece));
            controller.close();
          },
        }),
      'ok',
    ],
  ])('%s: is kept before anything of it is seen, and goes out whole', async (_name, body, text) => {
    const keep = keeping();
    let isDone = false;
    const captured = captureAnswer(answer(body(), { status: 201 }), keep, true).finally(() => {
      isDone = true;
    });
    await eventually(() => keep.kept.length === 1, 'it is being kept');
    await pause(5);
    expect([isDone, keep.kept[0]?.status, textOf(keep.kept[0]?.body)]).toEqual([false, 201, text]);
    keep.done();
    // Of no bytes there is no body: some servers would name a type for it.
    expect((await captured).body ?? null).toEqual(text === '' ? null : new TextEncoder().encode(text));
  });

  it('without a body, or with one that nobody will see, the answer itself goes out', async () => {
    for (const [response, hasBody] of [
      [answer(null, { status: 204 }), true],
      [answer(null, { status: 304 }), true],
      [answer('left out', { headers: { 'content-length': '8' } }), false],
    ] as const) {
      const keep = keeping();
      keep.done();
      expect(await captureAnswer(response, keep, hasBody)).toEqual({ instead: undefined });
      expect([keep.kept[0]?.body?.length, response.bodyUsed]).toEqual([0, false]);
    }
  });

  it('every field is captured, cookies one by one', async () => {
    const keep = keeping();
    keep.done();
    const headers: [string, string][] = [
      ['set-cookie', 'a=1, 2'],
      ['set-cookie', 'b=2'],
      ['x-own', '1'],
    ];
    await captureAnswer(answer('', { headers }), keep, true);
    expect(keep.kept[0]?.fields).toEqual(
      expect.arrayContaining(['set-cookie', 'a=1, 2', 'set-cookie', 'b=2', 'x-own', '1']),
    );
  });

  it('another outcome takes its place', async () => {
    const keep = keeping({ instead: REPLACEMENT });
    keep.done();
    expect((await captureAnswer(answer('ok'), keep, true)).instead).toBe(REPLACEMENT);
  });

  it('a body that was read already is not kept', async () => {
    const keep = keeping();
    keep.done();
    const used = answer('ok');
    await used.text();
    await captureAnswer(used, keep, true);
    const locked = answer('ok');
    locked.body?.getReader();
    await captureAnswer(locked, keep, true);
    expect(keep.kept.map(({ body }) => body)).toEqual([undefined, undefined]);
  });
});

describe('a stream', () => {
  it('goes on one piece behind; its last piece and end wait until it was kept', async () => {
    const [keep, { stream, say, controller }] = [keeping(), source()];
    const { body } = await captureAnswer(answer(stream), keep, true);
    const { seen, all } = reading(body);
    say('a');
    await pause(5);
    expect(seen.text).toBe('');
    say('b');
    await eventually(() => seen.text === 'a', 'the first piece');
    controller.close();
    await eventually(() => keep.kept.length === 1, 'it is being kept');
    await pause(5);
    expect(seen).toMatchObject({ text: 'a', isEnded: false });
    keep.done();
    await all;
    expect([seen, textOf(keep.kept[0]?.body)]).toEqual([{ text: 'ab', isEnded: true }, 'ab']);
  });

  it('a client that does not read keeps nobody from the outcome', async () => {
    const [keep, { stream, say, controller }] = [keeping(), source()];
    await captureAnswer(answer(stream), keep, true);
    for (let i = 0; i < 50; i++) say('x');
    await pause(5);
    controller.close();
    await eventually(() => keep.kept[0]?.body?.length === 50, 'it is kept');
  });

  it('I7: past the bound nothing is kept, and the client sets the pace', async () => {
    const keep = keeping({ maxBytes: 100 });
    let made = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (++made > 1_000) return controller.close();
        controller.enqueue(new Uint8Array(50));
      },
    });
    const { body, rest } = await captureAnswer(answer(stream), keep, true);
    await pause(20);
    expect(made).toBeLessThan(10);
    keep.done();
    const { seen, all } = reading(body);
    await Promise.all([all, rest]);
    expect([seen.text.length, keep.kept.length, keep.kept[0]?.body]).toEqual([50_000, 1, undefined]);
  });

  it('I7: one that breaks off is kept without a body before its client sees that', async () => {
    const [keep, { stream, say, controller }] = [keeping(), source()];
    const { body } = await captureAnswer(answer(stream), keep, true);
    const { seen, all } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await eventually(() => seen.text === 'a', 'the first piece');
    controller.error(new Error('boom'));
    await eventually(() => keep.kept.length === 1, 'it is being kept');
    expect([keep.kept[0]?.body, seen.error]).toEqual([undefined, undefined]);
    keep.done();
    await all;
    expect(seen).toMatchObject({ text: 'a', isEnded: false, error: { message: 'boom' } });
  });

  it('one that is broken at once breaks for its client', async () => {
    const keep = keeping();
    keep.done();
    const { stream, controller } = source();
    controller.error(new Error('boom'));
    const { seen, all } = reading((await captureAnswer(answer(stream), keep, true)).body);
    await all;
    expect([seen.error, keep.kept[0]?.body]).toMatchObject([{ message: 'boom' }, undefined]);
  });

  it('pieces of text are taken, anything else breaks it', async () => {
    for (const [piece, isText] of [
      ['text', true],
      [7, false],
    ] as const) {
      const keep = keeping();
      keep.done();
      const { stream, controller, isCancelled } = source();
      const { body } = await captureAnswer(answer(stream), keep, true);
      const { seen, all } = reading(body);
      controller.enqueue(piece);
      await pause(5);
      if (isText) controller.close();
      await all;
      expect([seen.isEnded, textOf(keep.kept[0]?.body), isCancelled()]).toEqual([
        isText,
        isText ? 'text' : undefined,
        !isText,
      ]);
    }
  });

  it('I11: a client that goes changes nothing: the rest is taken in and kept', async () => {
    const [keep, { stream, say, controller, isCancelled }] = [keeping(), source()];
    keep.done();
    const { body, rest } = await captureAnswer(answer(stream), keep, true);
    const { seen, reader } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await eventually(() => seen.text === 'a', 'the first piece');
    await reader.cancel();
    say('c');
    controller.close();
    await rest;
    expect([textOf(keep.kept[0]?.body), isCancelled()]).toEqual(['abc', false]);
  });

  it('I11: likewise past the bound, where it was waiting for its client', async () => {
    const [keep, { stream, say, controller, isCancelled }] = [keeping({ maxBytes: 1 }), source()];
    keep.done();
    const { body, rest } = await captureAnswer(answer(stream), keep, true);
    for (let i = 0; i < 10; i++) say('piece');
    await pause(5);
    await (body as ReadableStream).cancel();
    controller.close();
    await rest;
    expect([keep.kept.length, keep.kept[0]?.body, isCancelled()]).toEqual([1, undefined, false]);
  });

  it('another outcome counts, and the client has some of this one: it gets nothing more', async () => {
    const [keep, { stream, say, controller }] = [keeping({ instead: REPLACEMENT }), source()];
    keep.done();
    const { body } = await captureAnswer(answer(stream), keep, true);
    const { seen, all } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await pause(5);
    controller.close();
    await all;
    expect(seen).toMatchObject({ text: 'a', isEnded: false, error: { message: /Another outcome/ } });
  });

  it('what is captured is a copy: whoever reads may take the buffer away', async () => {
    const [keep, { stream, say, controller }] = [keeping(), source()];
    keep.done();
    const { body, rest } = await captureAnswer(answer(stream), keep, true);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    for (const piece of ['abc', 'd']) say(piece);
    const { value } = await reader.read();
    structuredClone(value?.buffer, { transfer: [value?.buffer as ArrayBuffer] });
    controller.close();
    await rest;
    expect(textOf(keep.kept[0]?.body)).toBe('abcd');
  });
});

describe('where another outcome may still win', () => {
  it('nothing is seen before all of it was kept', async () => {
    const [keep, { stream, say, controller }] = [keeping({ storeBeforeSending: true }), source()];
    let isDone = false;
    const captured = captureAnswer(answer(stream), keep, true).finally(() => {
      isDone = true;
    });
    say('a');
    await pause(5);
    say('b');
    controller.close();
    await eventually(() => keep.kept.length === 1, 'it is being kept');
    expect([isDone, textOf(keep.kept[0]?.body)]).toEqual([false, 'ab']);
    keep.done();
    expect(textOf((await captured).body)).toBe('ab');
  });

  it('what is too long is kept without a body, and then goes on', async () => {
    const [keep, { stream, say, controller }] = [keeping({ storeBeforeSending: true, maxBytes: 3 }), source()];
    const captured = captureAnswer(answer(stream), keep, true);
    for (const piece of ['ab', 'cd']) say(piece);
    await eventually(() => keep.kept.length === 1, 'it is being kept');
    expect(keep.kept[0]?.body).toBeUndefined();
    keep.done();
    const { seen, all } = reading((await captured).body);
    await eventually(() => seen.text === 'abcd', 'what was held');
    say('ef');
    await eventually(() => seen.text === 'abcdef', 'the rest, not behind any more');
    controller.close();
    await all;
    expect([seen.isEnded, keep.kept.length]).toEqual([true, 1]);
  });

  it('replaced, the rest of it goes nowhere, to its end', async () => {
    const instead = REPLACEMENT;
    const [keep, { stream, say, controller, isCancelled }] = [
      keeping({ storeBeforeSending: true, maxBytes: 3, instead }),
      source(),
    ];
    keep.done();
    const captured = captureAnswer(answer(stream), keep, true);
    for (const piece of ['ab', 'cd', 'ef']) say(piece);
    const { instead: reply, rest } = await captured;
    expect(reply).toBe(instead);
    say('gh');
    controller.close();
    await rest;
    expect([keep.kept.length, isCancelled()]).toEqual([1, false]);
  });
});
