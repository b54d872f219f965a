import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';

export type Method = (...args: unknown[]) => unknown;
export type MethodName = 'write' | 'end' | 'writeHead' | '_implicitHeader' | 'flushHeaders' | 'destroy' | 'emit' | 'on';
type Methods = Readonly<Record<MethodName, Method | undefined>>;
type GetterName = 'headersSent' | 'writableEnded';

/**
 * Methods that write to the connection. Middleware in front of the gate, such as compression or a session, may have
 * replaced them.
 */
const SENDING: readonly MethodName[] = ['write', 'end', 'writeHead', 'flushHeaders', 'destroy'];

/** The members that a handler finds on its response instead of the response's own. */
export interface Replacements {
  readonly methods: Readonly<Record<Exclude<MethodName, '_implicitHeader' | 'on'>, Method>>;
  /** Called when a head is needed and the handler did not write one. */
  readonly writeImplicitHead: () => void;
  readonly getters: Readonly<Record<GetterName, () => boolean>>;
}

/**
 * Puts methods between a handler and its response. Middleware in front of the gate that replaced methods of the
 * response is still called, as if nothing were between.
 */
export class Interposition {
  readonly #response: ServerResponse;
  /** The methods that the response had before, which are not Node's if middleware replaced them. */
  readonly #originals: Methods;
  /**
   * How many calls of originals are running. They must see the real state of the response, not the state that the
   * handler sees.
   */
  #runningCalls = 0;
  #isRemoved = false;

  constructor(response: ServerResponse, { methods, writeImplicitHead, getters }: Replacements) {
    this.#response = response;
    const all: Record<MethodName, Method> = {
      ...methods,
      // Called if the head is not written yet, by Node itself and by express-session.
      _implicitHeader: () => (this.#runningCalls > 0 ? this.call('_implicitHeader') : writeImplicitHead()),
      // Compression in front of the gate would pass a drain listener to its own stream, which does not notice pieces
      // that wait here.
      on: (event, listener) =>
        event === 'drain'
          ? Reflect.apply(EventEmitter.prototype.on, response, [event, listener])
          : this.call('on', event, listener),
    };
    const names = Object.keys(all) as MethodName[];
    const current = response as unknown as Methods;
    this.#originals = Object.fromEntries(names.map((name) => [name, current[name]])) as Methods;
    for (const name of names) {
      // HTTP/2 knows no implicit head.
      if (this.#originals[name] === undefined) continue;
      const own: Method = (...args) => (this.#isRemoved ? this.call(name, ...args) : all[name](...args));
      Object.assign(response, { [name]: own });
    }
    // For the handler, pieces that wait here are written.
    for (const name of Object.keys(getters) as GetterName[]) {
      const get = (): unknown => (this.#runningCalls > 0 ? this.#realValue(name) : getters[name]());
      Object.defineProperty(response, name, { get, configurable: true });
    }
  }

  /** Whether the response got its own methods back. */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  /** Calls a method that the response had before. */
  call(name: MethodName, ...args: unknown[]): unknown {
    const method = this.#originals[name] as Method;
    if (!SENDING.includes(name)) return Reflect.apply(method, this.#response, args);
    this.#runningCalls++;
    try {
      return Reflect.apply(method, this.#response, args);
    } finally {
      this.#runningCalls--;
    }
  }

  /** From now on Node calls the original `writeHead`, which middleware in front of the gate may have replaced. */
  restoreWriteHead(): void {
    this.#response.writeHead = this.#originals.writeHead as ServerResponse['writeHead'];
  }

  /**
   * The response behaves as before. The methods stay on it, since code behind the gate may have wrapped them; now they
   * call the originals.
   */
  remove(): void {
    this.#isRemoved = true;
    for (const name of ['headersSent', 'writableEnded']) Reflect.deleteProperty(this.#response, name);
  }

  #realValue(name: GetterName): unknown {
    return Reflect.get(Object.getPrototypeOf(this.#response), name, this.#response);
  }
}
