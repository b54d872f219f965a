import type { ConfigIssue } from './config-error.ts';
import { hideSecrets } from './hide-secrets.ts';

/** An object of a file that is not checked yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value if it is an object, otherwise an empty one. */
export function objectOrEmpty(value: unknown): JsonObject {
  return isObject(value) ? (value as JsonObject) : {};
}

/** The value if it is an array, otherwise an empty one. */
export function arrayOrEmpty(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An object, but not an array. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Reads JSON that a person wrote into a file. An error shows its line and column, which `JSON.parse` of Node 20 does
 * not always report. A name given twice in one object is an error too, because the first value would silently be lost.
 */
export function readJson(text: string): { readonly value: unknown } | { readonly issue: ConfigIssue } {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  try {
    new Scanner(source).scan();
    return { value: JSON.parse(source) };
  } catch (error) {
    const reason = error instanceof JsonError ? error.at(source) : `not JSON: ${(error as Error).message}`;
    return { issue: { path: '', reason } };
  }
}

class JsonError extends Error {
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

const MAX_DEPTH = 64;
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** Walks over JSON and throws at the first error; returns nothing. */
class Scanner {
  #at = 0;

  constructor(readonly source: string) {}

  scan(): void {
    this.#value(0);
    if (this.#at < this.source.length) this.#fail('more text after the end of the JSON value');
  }

  #value(depth: number): void {
    if (depth > MAX_DEPTH) this.#fail(`nested deeper than ${MAX_DEPTH} levels`);
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
      if (names.has(name)) this.#fail(`${hideSecrets(JSON.stringify(name))} appears twice in one object`, start);
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

  #string(expected: string): string {
    const text = this.#take(STRING);
    if (text === undefined) this.#fail(`${expected} expected`);
    return JSON.parse(text) as string;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.source)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  #fail(reason: string, offset = this.#at): never {
    throw new JsonError(offset >= this.source.length ? `${reason}, but the file ends` : reason, offset);
  }
}
