import { eventually, pause } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { captureAnswer } from '../../../src/adapters/web/capture.ts';
import type { CapturedResponse } from '../../../src/gate/recording.ts';
import type { Reply } from '../../../src/http/problem.ts';

const REPLACEMENT: Reply = { status: 409, headers: {}, body: 'instead' };

/** A recording that finishes storing when the test calls `done`. */
function recordingOf({ maxBytes = 1_000, storeBeforeSending = false, instead = undefined as Reply | undefined } = {}) {
  const stored: CapturedResponse[] = [];
  let done = () => {};
  const until = new Promise<void>((resolve) => {
    done = resolve;
  });
  const store = async (response: CapturedResponse) => {
    stored.push(response);
    await until;
    return instead;
  };
  const fail = async () => REPLACEMENT;
  return { maxBytes, storeBeforeSending, store, fail, stored, done };
}

/** A stream whose pieces come when the test says so. */
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

const responseOf = (body: BodyInit | null, init?: ResponseInit) => new Response(body, init);
const textOf = (bytes: unknown) => (bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : undefined);
type BodyInit = ConstructorParameters<typeof Response>[0];

/** Reads a body to its end, and shows what was read so far. */
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

describe('a response in memory', () => {
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
  ])('%s: is stored before any of it is sent, and is sent whole', async (_name, body, text) => {
    const recording = recordingOf();
    let isDone = false;
    const captured = captureAnswer(responseOf(body(), { status: 201 }), recording, true).finally(() => {
      isDone = true;
    });
    await eventually(() => recording.stored.length === 1, 'it is being stored');
    await pause(5);
    expect([isDone, recording.stored[0]?.status, textOf(recording.stored[0]?.body)]).toEqual([false, 201, text]);
    recording.done();
    // An empty body is left out: some servers would add a content-type to it.
    expect((await captured).body ?? null).toEqual(text === '' ? null : new TextEncoder().encode(text));
  });

  it('without a body, or with one that the client does not see, is sent as it is', async () => {
    for (const [response, hasBody] of [
      [responseOf(null, { status: 204 }), true],
      [responseOf(null, { status: 304 }), true],
      [responseOf('left out', { headers: { 'content-length': '8' } }), false],
    ] as const) {
      const recording = recordingOf();
      recording.done();
      expect(await captureAnswer(response, recording, hasBody)).toEqual({ instead: undefined });
      expect([recording.stored[0]?.body?.length, response.bodyUsed]).toEqual([0, false]);
    }
  });

  it('has every field captured, and each cookie by itself', async () => {
    const recording = recordingOf();
    recording.done();
    const headers: [string, string][] = [
      ['set-cookie', 'a=1, 2'],
      ['set-cookie', 'b=2'],
      ['x-own', '1'],
    ];
    await captureAnswer(responseOf('', { headers }), recording, true);
    expect(recording.stored[0]?.fields).toEqual(
      expect.arrayContaining(['set-cookie', 'a=1, 2', 'set-cookie', 'b=2', 'x-own', '1']),
    );
  });

  it('is replaced if another outcome counts', async () => {
    const recording = recordingOf({ instead: REPLACEMENT });
    recording.done();
    expect((await captureAnswer(responseOf('ok'), recording, true)).instead).toBe(REPLACEMENT);
  });

  it('I7: that is not as long as its content-length is stored without a body, and sent as it is', async () => {
    const recording = recordingOf();
    recording.done();
    const { body } = await captureAnswer(responseOf('abc', { headers: { 'content-length': '5' } }), recording, true);
    const { seen, all } = reading(body);
    await all;
    expect([seen.text, seen.isEnded, recording.stored.map((one) => one.body)]).toEqual(['abc', true, [undefined]]);
  });

  it('whose body was read already is stored without a body', async () => {
    const recording = recordingOf();
    recording.done();
    const used = responseOf('ok');
    await used.text();
    await captureAnswer(used, recording, true);
    const locked = responseOf('ok');
    locked.body?.getReader();
    await captureAnswer(locked, recording, true);
    expect(recording.stored.map(({ body }) => body)).toEqual([undefined, undefined]);
  });
});

describe('a stream', () => {
  it('is sent one piece behind; its last piece and its end wait until it is stored', async () => {
    const [recording, { stream, say, controller }] = [recordingOf(), source()];
    const { body } = await captureAnswer(responseOf(stream), recording, true);
    const { seen, all } = reading(body);
    say('a');
    await pause(5);
    expect(seen.text).toBe('');
    say('b');
    await eventually(() => seen.text === 'a', 'the first piece');
    controller.close();
    await eventually(() => recording.stored.length === 1, 'it is being stored');
    await pause(5);
    expect(seen).toMatchObject({ text: 'a', isEnded: false });
    recording.done();
    await all;
    expect([seen, textOf(recording.stored[0]?.body)]).toEqual([{ text: 'ab', isEnded: true }, 'ab']);
  });

  it('is stored even if the client does not read', async () => {
    const [recording, { stream, say, controller }] = [recordingOf(), source()];
    await captureAnswer(responseOf(stream), recording, true);
    for (let i = 0; i < 50; i++) say('x');
    await pause(5);
    controller.close();
    await eventually(() => recording.stored[0]?.body?.length === 50, 'it is stored');
  });

  it('I7: past the bound no body is stored, and the client sets the pace', async () => {
    const recording = recordingOf({ maxBytes: 100 });
    let made = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (++made > 1_000) return controller.close();
        controller.enqueue(new Uint8Array(50));
      },
    });
    const { body, rest } = await captureAnswer(responseOf(stream), recording, true);
    await pause(20);
    expect(made).toBeLessThan(10);
    recording.done();
    const { seen, all } = reading(body);
    await Promise.all([all, rest]);
    expect([seen.text.length, recording.stored.length, recording.stored[0]?.body]).toEqual([50_000, 1, undefined]);
  });

  it('I7: one that breaks off is stored without a body before its client sees that', async () => {
    const [recording, { stream, say, controller }] = [recordingOf(), source()];
    const { body } = await captureAnswer(responseOf(stream), recording, true);
    const { seen, all } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await eventually(() => seen.text === 'a', 'the first piece');
    controller.error(new Error('boom'));
    await eventually(() => recording.stored.length === 1, 'it is being stored');
    expect([recording.stored[0]?.body, seen.error]).toEqual([undefined, undefined]);
    recording.done();
    await all;
    expect(seen).toMatchObject({ text: 'a', isEnded: false, error: { message: 'boom' } });
  });

  it('one that fails at once fails for its client', async () => {
    const recording = recordingOf();
    recording.done();
    const { stream, controller } = source();
    controller.error(new Error('boom'));
    const { seen, all } = reading((await captureAnswer(responseOf(stream), recording, true)).body);
    await all;
    expect([seen.error, recording.stored[0]?.body]).toMatchObject([{ message: 'boom' }, undefined]);
  });

  it('may have pieces of text; any other value makes it fail', async () => {
    for (const [piece, isText] of [
      ['text', true],
      [7, false],
    ] as const) {
      const recording = recordingOf();
      recording.done();
      const { stream, controller, isCancelled } = source();
      const { body } = await captureAnswer(responseOf(stream), recording, true);
      const { seen, all } = reading(body);
      controller.enqueue(piece);
      await pause(5);
      if (isText) controller.close();
      await all;
      expect([seen.isEnded, textOf(recording.stored[0]?.body), isCancelled()]).toEqual([
        isText,
        isText ? 'text' : undefined,
        !isText,
      ]);
    }
  });

  it('I11: is read to its end and stored if the client disconnects', async () => {
    const [recording, { stream, say, controller, isCancelled }] = [recordingOf(), source()];
    recording.done();
    const { body, rest } = await captureAnswer(responseOf(stream), recording, true);
    const { seen, reader } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await eventually(() => seen.text === 'a', 'the first piece');
    await reader.cancel();
    say('c');
    controller.close();
    await rest;
    expect([textOf(recording.stored[0]?.body), isCancelled()]).toEqual(['abc', false]);
  });

  it('I11: also past the bound, while it waits for its client', async () => {
    const [recording, { stream, say, controller, isCancelled }] = [recordingOf({ maxBytes: 1 }), source()];
    recording.done();
    const { body, rest } = await captureAnswer(responseOf(stream), recording, true);
    for (let i = 0; i < 10; i++) say('piece');
    await pause(5);
    await (body as ReadableStream).cancel();
    controller.close();
    await rest;
    expect([recording.stored.length, recording.stored[0]?.body, isCancelled()]).toEqual([1, undefined, false]);
  });

  it('is broken off if another outcome counts and the client has a part of this one', async () => {
    const [recording, { stream, say, controller }] = [recordingOf({ instead: REPLACEMENT }), source()];
    recording.done();
    const { body } = await captureAnswer(responseOf(stream), recording, true);
    const { seen, all } = reading(body);
    for (const piece of ['a', 'b']) say(piece);
    await pause(5);
    controller.close();
    await all;
    expect(seen).toMatchObject({ text: 'a', isEnded: false, error: { message: /Another outcome/ } });
  });

  it('is recorded as a copy: the code that reads it may detach its buffers', async () => {
    const [recording, { stream, say, controller }] = [recordingOf(), source()];
    recording.done();
    const { body, rest } = await captureAnswer(responseOf(stream), recording, true);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    for (const piece of ['abc', 'd']) say(piece);
    const { value } = await reader.read();
    structuredClone(value?.buffer, { transfer: [value?.buffer as ArrayBuffer] });
    controller.close();
    await rest;
    expect(textOf(recording.stored[0]?.body)).toBe('abcd');
  });
});

describe('if another outcome may still win', () => {
  it('nothing is sent before all of it is stored', async () => {
    const [recording, { stream, say, controller }] = [recordingOf({ storeBeforeSending: true }), source()];
    let isDone = false;
    const captured = captureAnswer(responseOf(stream), recording, true).finally(() => {
      isDone = true;
    });
    say('a');
    await pause(5);
    say('b');
    controller.close();
    await eventually(() => recording.stored.length === 1, 'it is being stored');
    expect([isDone, textOf(recording.stored[0]?.body)]).toEqual([false, 'ab']);
    recording.done();
    expect(textOf((await captured).body)).toBe('ab');
  });

  it('a body that is too long is not stored; it is sent after the outcome is stored', async () => {
    const [recording, { stream, say, controller }] = [recordingOf({ storeBeforeSending: true, maxBytes: 3 }), source()];
    const captured = captureAnswer(responseOf(stream), recording, true);
    for (const piece of ['ab', 'cd']) say(piece);
    await eventually(() => recording.stored.length === 1, 'it is being stored');
    expect(recording.stored[0]?.body).toBeUndefined();
    recording.done();
    const { seen, all } = reading((await captured).body);
    await eventually(() => seen.text === 'abcd', 'the pieces that waited');
    say('ef');
    await eventually(() => seen.text === 'abcdef', 'the rest, without delay');
    controller.close();
    await all;
    expect([seen.isEnded, recording.stored.length]).toEqual([true, 1]);
  });

  it('a replaced response is read to its end and discarded', async () => {
    const instead = REPLACEMENT;
    const [recording, { stream, say, controller, isCancelled }] = [
      recordingOf({ storeBeforeSending: true, maxBytes: 3, instead }),
      source(),
    ];
    recording.done();
    const captured = captureAnswer(responseOf(stream), recording, true);
    for (const piece of ['ab', 'cd', 'ef']) say(piece);
    const { instead: reply, rest } = await captured;
    expect(reply).toBe(instead);
    say('gh');
    controller.close();
    await rest;
    expect([recording.stored.length, isCancelled()]).toEqual([1, false]);
  });
});
