import { describe, expect, it } from 'vitest';
import { AnswerTape, type AnswerTapeOptions } from '../../src/gate/answer-tape.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (body: Uint8Array | undefined): string | undefined => body && new TextDecoder().decode(body);

/** A tape of a response with status 200 and these fields. */
function begun(
  { fields = [] as string[], status = 200, maxBytes = 100, storeBeforeSending = false } = {},
  options?: AnswerTapeOptions,
) {
  const tape = new AnswerTape({ maxBytes, storeBeforeSending }, options);
  tape.begin({ status, fields });
  return { tape, sendable: () => tape.sendable().map((piece) => textOf(piece)) };
}

describe('a tape', () => {
  it('lets the client have all but the last piece, until the response is stored', () => {
    const { tape, sendable } = begun();
    tape.write(bytes('a'));
    expect(sendable()).toEqual([]);
    tape.write(bytes('b'));
    tape.write(bytes('c'));
    expect(sendable()).toEqual(['a', 'b']);
    expect(tape.end()).toEqual({ status: 200, fields: [], body: bytes('abc') });
    expect(sendable()).toEqual([]);
    tape.stored(false);
    expect([sendable(), sendable()]).toEqual([['c'], []]);
  });

  it('lets the client have nothing before storing, if another response may replace this one', () => {
    const { tape, sendable } = begun({ storeBeforeSending: true });
    tape.write(bytes('a'));
    tape.write(bytes('b'));
    expect([sendable(), tape.maySendHead]).toEqual([[], false]);
    tape.end();
    expect(sendable()).toEqual([]);
    tape.stored(false);
    expect([sendable(), tape.maySendHead]).toEqual([['a', 'b'], true]);
  });

  it('I7: a body past maxBytes is not recorded; after storing, each piece is sent at once', () => {
    const { tape, sendable } = begun({ maxBytes: 2, storeBeforeSending: true });
    tape.write(bytes('ab'));
    expect(tape.isRecording).toBe(true);
    tape.write(bytes('c'));
    expect(tape.isRecording).toBe(false);
    expect(tape.breakOff()?.body).toBeUndefined();
    tape.stored(false);
    expect(sendable()).toEqual(['ab', 'c']);
    tape.write(bytes('d'));
    expect(sendable()).toEqual(['d']);
  });

  it.each(['end', 'breakOff'] as const)('%s says what to store once', (ending) => {
    const { tape } = begun();
    expect(tape[ending]()).toBeDefined();
    expect([tape.end(), tape.breakOff()]).toEqual([undefined, undefined]);
  });

  it('without a head it broke off: status 500 and no body', () => {
    const tape = new AnswerTape({ maxBytes: 9, storeBeforeSending: false });
    expect(tape.breakOff()).toEqual({ status: 500, fields: [], body: undefined, isBroken: true });
  });

  it.each<[string, string, string | undefined]>([
    ['equal to', '3', 'abc'],
    ['shorter than', '4', undefined],
    ['longer than', '2', undefined],
  ])('I7: a body that is %s its content-length', (_name, length, stored) => {
    const { tape } = begun({ fields: ['Content-Length', length] });
    tape.write(bytes('abc'));
    expect(textOf(tape.end()?.body)).toBe(stored);
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('%s with status %i has no body, whatever length its head says and whatever is written', (method, status) => {
    const { tape, sendable } = begun({ status, maxBytes: 2, fields: ['content-length', '1234'] }, { method });
    tape.write(bytes('ignored'));
    expect([tape.hasBody, tape.isRecording, tape.maySendHead]).toEqual([false, true, false]);
    expect(tape.end()).toEqual({ status, fields: ['content-length', '1234'], body: bytes('') });
    tape.stored(false);
    expect([sendable(), tape.maySendHead]).toEqual([[], true]);
  });

  it.each<[string, string[], boolean]>([
    ['of length 0 waits, because it is the end too', ['Content-Length', '0'], false],
    ['of another length does not wait', ['content-length', '1'], true],
    ['without a length does not wait', [], true],
  ])('a head %s', (_name, fields, mayBeSent) => {
    const { tape } = begun({ fields });
    expect(tape.maySendHead).toBe(mayBeSent);
    tape.end();
    tape.stored(false);
    expect(tape.maySendHead).toBe(true);
  });

  it('I11: records on if the client disconnects', () => {
    const { tape, sendable } = begun();
    tape.write(bytes('a'));
    tape.write(bytes('b'));
    tape.discard();
    expect([sendable(), tape.isDiscarded]).toEqual([[], true]);
    tape.write(bytes('c'));
    expect(textOf(tape.end()?.body)).toBe('abc');
    tape.stored(false);
    expect(sendable()).toEqual([]);
  });

  it('I10: sends nothing more if another response replaces this one', () => {
    const { tape, sendable } = begun();
    tape.write(bytes('a'));
    tape.end();
    tape.stored(true);
    expect([tape.isStored, tape.isDiscarded, sendable()]).toEqual([true, true, []]);
  });

  it('records a copy if the transport asks for that, and sends the piece itself', () => {
    const { tape } = begun({}, { copy: true });
    // The slice of a Buffer would be a view of the same bytes.
    const piece = Buffer.from('abc');
    tape.write(piece);
    tape.write(bytes('d'));
    expect(tape.sendable()[0]).toBe(piece);
    piece.fill(0);
    expect(textOf(tape.end()?.body)).toBe('abcd');
  });

  it('ignores empty pieces', () => {
    const { tape, sendable } = begun();
    for (const text of ['a', '', '']) tape.write(bytes(text));
    expect(sendable()).toEqual([]);
  });

  it('a single piece is stored without another copy', () => {
    const { tape } = begun();
    const piece = bytes('abc');
    tape.write(piece);
    expect(tape.end()?.body).toBe(piece);
  });
});
