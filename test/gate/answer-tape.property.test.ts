import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { AnswerTape } from '../../src/gate/answer-tape.ts';
import type { CapturedResponse } from '../../src/gate/recording.ts';

type Step =
  | { readonly do: 'write'; readonly size: number }
  | { readonly do: 'send' | 'end' | 'breakOff' | 'stored' | 'replaced' | 'discard' };

interface WindowSet {
  readonly maxBytes: number;
  readonly storeBeforeSending: boolean;
  readonly method: string;
  readonly status: number;
  /** What `content-length` says, compared with what is written until the end. */
  readonly contentLength: 'none' | 'right' | 'zero' | 'one more';
  readonly steps: readonly Step[];
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), size: fc.nat({ max: 4 }) }) },
  { weight: 3, arbitrary: fc.constant<Step>({ do: 'send' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Step[]>({ do: 'end' }, { do: 'breakOff' }, { do: 'stored' }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step[]>({ do: 'replaced' }, { do: 'discard' }) },
);

const windowSet: fc.Arbitrary<WindowSet> = fc.record({
  maxBytes: fc.nat({ max: 20 }),
  storeBeforeSending: fc.boolean(),
  method: fc.constantFrom('GET', 'GET', 'POST', 'HEAD'),
  status: fc.constantFrom(200, 200, 201, 204, 304),
  contentLength: fc.constantFrom<WindowSet['contentLength'][]>('none', 'right', 'zero', 'one more'),
  steps: fc.array(step, { maxLength: 25 }),
});

/**
 * Only what a transport does: nothing is written after the end, and storing finishes once, after the tape said what to
 * store.
 */
function possible(steps: readonly Step[]): Step[] {
  const done: Step[] = [];
  const has = (...names: Step['do'][]) => done.some((before) => names.includes(before.do));
  for (const next of steps) {
    const isFinished = has('stored', 'replaced');
    if (next.do === 'write' && has('end')) continue;
    if ((next.do === 'stored' || next.do === 'replaced') && (isFinished || !has('end', 'breakOff'))) continue;
    done.push(next);
  }
  return done;
}

/**
 * The rules, without a queue and without state: every answer is computed anew from the list of all that happened. Bytes
 * are numbered in the order in which they are written, so that a piece in a wrong place cannot go unnoticed.
 */
class Model {
  readonly #log: Step[] = [];

  constructor(readonly windowSet: WindowSet) {}

  happened(next: Step): void {
    this.#log.push(next);
  }

  get hasBody(): boolean {
    return this.windowSet.method !== 'HEAD' && this.windowSet.status !== 204 && this.windowSet.status !== 304;
  }

  /** Sizes of the pieces that were written, until one of these happened. */
  written(...until: Step['do'][]): number[] {
    const end = this.#log.findIndex((one) => until.includes(one.do));
    return this.#log
      .slice(0, end === -1 ? undefined : end)
      .flatMap((one) => (one.do === 'write' && one.size > 0 && this.hasBody ? [one.size] : []));
  }

  /** Sizes of the pieces that the client has: those that might be sent at the best moment so far. */
  sent(): number[] {
    const counts = this.#log.map((one, at) => {
      if (one.do !== 'send') return 0;
      const past = new Model(this.windowSet);
      for (const earlier of this.#log.slice(0, at)) past.happened(earlier);
      return past.#mayHave();
    });
    return this.written().slice(0, Math.max(0, ...counts));
  }

  #mayHave(): number {
    // Once the client is gone, or gets another response, it gets nothing new.
    if (this.#has('discard', 'replaced')) return 0;
    const all = this.written().length;
    if (this.#has('stored')) return all;
    return this.windowSet.storeBeforeSending ? 0 : all - 1;
  }

  /** The length of the body that must be stored, asked when the response ends or breaks off first. */
  storedLength(contentLength: number | undefined): number | undefined {
    const sum = total(this.written('end', 'breakOff'));
    const first = this.#log.find((one) => one.do === 'end' || one.do === 'breakOff');
    if (first?.do === 'breakOff' || sum > this.windowSet.maxBytes) return undefined;
    return this.hasBody && contentLength !== undefined && contentLength !== sum ? undefined : sum;
  }

  isRecording(): boolean {
    return !this.#has('end', 'breakOff') && total(this.written()) <= this.windowSet.maxBytes;
  }

  #has(...names: Step['do'][]): boolean {
    return this.#log.some((one) => names.includes(one.do));
  }
}

const total = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0);
const numbered = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function contentLengthOf({ contentLength }: WindowSet, steps: readonly Step[]): number | undefined {
  if (contentLength === 'none') return undefined;
  if (contentLength === 'zero') return 0;
  const sum = total(steps.flatMap((one) => (one.do === 'write' ? [one.size] : [])));
  return contentLength === 'right' ? sum : sum + 1;
}

/** Plays the steps on a tape and on the model. */
function play(
  next: WindowSet,
  check: (tape: AnswerTape, model: Model, sent: number[][], stored: CapturedResponse[]) => void,
) {
  const steps = possible(next.steps);
  const length = contentLengthOf(next, steps);
  const fields = length === undefined ? ['x-own', '1'] : ['Content-Length', String(length)];
  const tape = new AnswerTape(next, { method: next.method, copy: true });
  const model = new Model(next);
  const sent: number[][] = [];
  const stored: CapturedResponse[] = [];
  let count = 0;
  tape.begin({ status: next.status, fields });
  for (const one of steps) {
    if (one.do === 'write') {
      const piece = Uint8Array.from(numbered(one.size), (i) => count + i);
      count += one.size;
      tape.write(piece);
    } else if (one.do === 'send') sent.push(...tape.sendable().map((piece) => [...piece]));
    else if (one.do === 'discard') tape.discard();
    else if (one.do === 'stored' || one.do === 'replaced') tape.stored(one.do === 'replaced');
    else {
      const captured = tape[one.do]();
      if (captured !== undefined) stored.push(captured);
    }
    model.happened(one);
    check(tape, model, sent, stored);
  }
  return { model, sent, stored, length, fields, steps };
}

describe('a tape, whatever happens in whatever order', () => {
  it('sends what the model sends: the beginning of the response, in the pieces that were written', () => {
    fc.assert(
      fc.property(windowSet, (next) => {
        play(next, (tape, model, sent) => {
          const sizes = model.sent();
          expect(sent.map((piece) => piece.length)).toEqual(sizes);
          expect(sent.flat()).toEqual(numbered(total(sizes)));
          expect(tape.isRecording).toBe(model.isRecording());
        });
      }),
      { numRuns: randomRuns(1_500) },
    );
  });

  it('I4: before storing, never sends the last piece, and nothing at all if another response may win', () => {
    fc.assert(
      fc.property(windowSet, (next) => {
        play(next, (tape, model, sent) => {
          if (tape.isStored) return;
          const written = model.written().length;
          expect(sent.length).toBeLessThanOrEqual(next.storeBeforeSending ? 0 : Math.max(0, written - 1));
          if (next.storeBeforeSending || !model.hasBody || next.contentLength === 'zero')
            expect(tape.maySendHead).toBe(false);
        });
      }),
      { numRuns: randomRuns(600) },
    );
  });

  it('sends the whole response in the end, if it is stored and no other one replaces it', () => {
    fc.assert(
      fc.property(windowSet, (next) => {
        const kind = (one: Step) => one.do !== 'replaced' && one.do !== 'discard' && one.do !== 'breakOff';
        const ending: Step[] = [{ do: 'end' }, { do: 'stored' }, { do: 'send' }];
        const { model, sent } = play({ ...next, steps: [...next.steps.filter(kind), ...ending] }, () => {});
        expect(sent.flat()).toEqual(numbered(total(model.written())));
        expect(model.sent()).toEqual(model.written());
      }),
      { numRuns: randomRuns(600) },
    );
  });

  it('I7: returns once what to store: the whole body, or none if it is too long or incomplete', () => {
    fc.assert(
      fc.property(windowSet, (next) => {
        const { model, stored, length, fields, steps } = play(next, () => {});
        const hasEnded = steps.some((one) => one.do === 'end' || one.do === 'breakOff');
        expect(stored).toHaveLength(hasEnded ? 1 : 0);
        const [captured] = stored;
        if (captured === undefined) return;
        const expected = model.storedLength(length);
        expect([captured.status, captured.fields]).toEqual([next.status, fields]);
        expect(captured.body && [...captured.body]).toEqual(expected === undefined ? undefined : numbered(expected));
      }),
      { numRuns: randomRuns(1_500) },
    );
  });

  it('sends nothing of a response after it was replaced', () => {
    fc.assert(
      fc.property(windowSet, (next) => {
        let before: number | undefined;
        play(next, (tape, _model, sent) => {
          if (!tape.isDiscarded) return;
          before ??= sent.length;
          expect([sent.length, tape.sendable()]).toEqual([before, []]);
        });
      }),
      { numRuns: randomRuns(600) },
    );
  });
});
