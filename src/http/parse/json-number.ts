type State = 'start' | 'minus' | 'zero' | 'integer' | 'point' | 'fraction' | 'e' | 'sign' | 'exponent';
type Character = '0' | '1-9' | '-' | '+' | '.' | 'e';

/** The grammar of RFC 8259, section 6. */
const NEXT: Readonly<Record<State, Partial<Record<Character, State>>>> = {
  start: { '-': 'minus', '0': 'zero', '1-9': 'integer' },
  minus: { '0': 'zero', '1-9': 'integer' },
  zero: { '.': 'point', e: 'e' },
  integer: { '0': 'integer', '1-9': 'integer', '.': 'point', e: 'e' },
  point: { '0': 'fraction', '1-9': 'fraction' },
  fraction: { '0': 'fraction', '1-9': 'fraction', e: 'e' },
  e: { '0': 'exponent', '1-9': 'exponent', '-': 'sign', '+': 'sign' },
  sign: { '0': 'exponent', '1-9': 'exponent' },
  exponent: { '0': 'exponent', '1-9': 'exponent' },
};
const COMPLETE: ReadonlySet<State> = new Set<State>(['zero', 'integer', 'fraction', 'exponent']);

/** Checks a JSON number, one byte at a time. */
export class JsonNumber {
  #state: State = 'start';

  begin(): void {
    this.#state = 'start';
  }

  get isComplete(): boolean {
    return COMPLETE.has(this.#state);
  }

  /** Returns false if the byte does not belong to the number. */
  take(byte: number): boolean {
    // Most bytes of a long number are digits that do not change the state.
    if (byte >= 0x30 && byte <= 0x39 && (this.#state === 'integer' || this.#state === 'fraction')) return true;
    const character = characterOf(byte);
    const next = character === undefined ? undefined : NEXT[this.#state][character];
    if (next === undefined) return false;
    this.#state = next;
    return true;
  }
}

function characterOf(byte: number): Character | undefined {
  if (byte === 0x30) return '0';
  if (byte > 0x30 && byte <= 0x39) return '1-9';
  if (byte === 0x2d) return '-';
  if (byte === 0x2b) return '+';
  if (byte === 0x2e) return '.';
  return (byte | 0x20) === 0x65 ? 'e' : undefined;
}
