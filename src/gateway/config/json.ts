import type { Fault } from './config-error.ts';

/** What a JSON text says, or where it stops being JSON. */
export type JsonText = { readonly value: unknown } | { readonly fault: Fault };

/**
 * Reads JSON as a person writes it into a file: a fault has its line and column, which `JSON.parse` of Node 20 does not always tell,
 * and a name given twice in one object is a fault too, since the first value would silently be lost.
 */
export function readJson(text: string): JsonText {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  try {
    new Scanner(source).scan();
    return { value: JSON.parse(source) };
  } catch (error) {
    if (error instanceof JsonFault) return { fault: { path: '', reason: error.at(source) } };
    return { fault: { path: '', reason: `not JSON: ${(error as Error).message}` } };
  }
}

class JsonFault extends Error {
  constructor(
    readonly reason: string,
    readonly offset: number,
  ) {
    super(reason);
  }

  at(source: string): string {
    const lines = source.slice(0, this.offset).split('\n');
    return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${this.reason}`;
  }
}

const DEEPEST = 64;
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** Walks over JSON without making anything of it. */
class Scanner {
  #at = 0;

  constructor(readonly source: string) {}

  scan(): void {
    this.#value(0);
    if (this.#at < this.source.length) this.#fail('more text after the end of the JSON value');
  }

  #value(depth: number): void {
    if (depth > DEEPEST) this.#fail(`nested deeper than ${DEEPEST} levels`);
    this.#take(SPACE);
    const next = this.source[this.#at];
    if (next === '{') this.#members(depth);
    else if (next === '[') this.#sequence(']', () => this.#value(depth + 1));
    else if (next === '"') this.#string('a string');
    else if (this.#take(SCALAR) === undefined) this.#fail('a JSON value expected');
    this.#take(SPACE);
  }

  #members(depth: number): void {
    const names = new Set<string>();
    this.#sequence('}', () => {
      this.#take(SPACE);
      const start = this.#at;
      const name = this.#string('a name in double quotes');
      if (names.has(name)) this.#fail(`${JSON.stringify(name)} stands twice in one object`, start);
      names.add(name);
      this.#take(SPACE);
      if (this.source[this.#at++] !== ':') this.#fail('":" expected', this.#at - 1);
      this.#value(depth + 1);
    });
  }

  #sequence(end: string, element: () => void): void {
    this.#at++;
    this.#take(SPACE);
    if (this.source[this.#at] === end) {
      this.#at++;
      return;
    }
    for (;;) {
      element();
      const next = this.source[this.#at++];
      if (next === end) return;
      if (next !== ',') this.#fail(`"," or "${end}" expected`, this.#at - 1);
    }
  }

  #string(what: string): string {
    const text = this.#take(STRING);
    if (text === undefined) this.#fail(`${what} expected`);
    return JSON.parse(text) as string;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.source)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  #fail(reason: string, offset = this.#at): never {
    throw new JsonFault(offset >= this.source.length ? `${reason}, but the file ends` : reason, offset);
  }
}
