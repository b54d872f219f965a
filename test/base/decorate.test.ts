import { describe, expect, expectTypeOf, it } from 'vitest';
import { decorate, type Fields, type MethodName, type MethodTable } from '../../src/base/decorate.ts';

interface Port {
  readonly size: number;
  readonly name?: string;
  get(key: string): number | undefined;
  set?(key: string, value: number): void;
  close?(): void;
}

const METHODS: MethodTable<Port> = { get: true, set: true, close: true };

/** Its methods need their own object as `this`. */
class Values implements Port {
  readonly #values = new Map<string, number>();

  get size(): number {
    return this.#values.size;
  }

  get(key: string): number | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: number): void {
    this.#values.set(key, value);
  }
}

describe('types', () => {
  it('the table of a port needs every method, also an optional one that the port gains', () => {
    interface Grown extends Port {
      pause?(): void;
    }
    // @ts-expect-error `close` is missing
    const missing: MethodTable<Port> = { get: true, set: true };
    // @ts-expect-error the port has a method more
    const grown: MethodTable<Grown> = METHODS;
    expectTypeOf<MethodName<Grown>>().toEqualTypeOf<'get' | 'set' | 'close' | 'pause'>();
    expect([missing, grown]).toHaveLength(2);
  });

  it('every field is needed, also an optional one', () => {
    expectTypeOf<Fields<Port>>().toEqualTypeOf<{ readonly size: number; readonly name: string }>();
    // @ts-expect-error `name` is missing
    decorate(new Values() as Port, METHODS, { size: 0 }, {});
  });

  it('a wrapper has the type of its method', () => {
    // @ts-expect-error a method that the port does not have
    decorate(new Values() as Port, METHODS, { size: 0, name: '' }, { put: (call) => call });
    // @ts-expect-error it returns another type
    decorate(new Values() as Port, METHODS, { size: 0, name: '' }, { get: () => () => 'text' });
  });
});

describe('decorate', () => {
  const fields = { size: 7, name: 'values' };

  it('calls the methods on their object, and puts wrappers in the place of some', () => {
    const calls: unknown[] = [];
    const decorated = decorate(new Values() as Port, METHODS, fields, {
      get: (get) => (key) => {
        calls.push(key);
        return get(key);
      },
    });
    const { get, set } = decorated;
    set?.('a', 1);
    expect([get('a'), get('b'), calls, decorated.size, decorated.name]).toEqual([
      1,
      undefined,
      ['a', 'b'],
      7,
      'values',
    ]);
  });

  it('has an optional method if and only if the object has it, whatever the wrappers', () => {
    const wrappers = { close: () => () => undefined };
    expect(Object.keys(decorate(new Values() as Port, METHODS, fields, wrappers))).toEqual([
      'size',
      'name',
      'get',
      'set',
    ]);
    const open = Object.assign(new Values(), { close: undefined, pause: () => {} });
    expect('close' in decorate(open as unknown as Port, METHODS, fields, wrappers)).toBe(false);
  });

  it('returns and throws exactly what the method does', async () => {
    const reply = Promise.resolve(1);
    const fault = new Error('away');
    const inner = {
      size: 0,
      get: () => reply as never,
      set: () => {
        throw fault;
      },
    };
    const decorated = decorate<Port>(inner, METHODS, fields, {});
    expect(decorated.get('a')).toBe(reply);
    expect(() => decorated.set?.('a', 1)).toThrow(fault);
  });
});
