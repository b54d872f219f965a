import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';

export type Method = (...args: unknown[]) => unknown;
export type MethodName = 'write' | 'end' | 'writeHead' | '_implicitHeader' | 'flushHeaders' | 'destroy' | 'emit' | 'on';
type Methods = Readonly<Record<MethodName, Method | undefined>>;
type Seen = 'headersSent' | 'writableEnded';

/** By which what stands in front of the gate is called. */
const DOWNWARD: readonly MethodName[] = ['write', 'end', 'writeHead', 'flushHeaders', 'destroy'];

/** What a handler is to find in the place of its response's own. */
export interface Interposed {
  readonly methods: Readonly<Record<Exclude<MethodName, '_implicitHeader' | 'on'>, Method>>;
  /** A head is wanted, whatever was set. */
  readonly head: () => void;
  readonly seen: Readonly<Record<Seen, () => boolean>>;
}

/**
 * Between a handler and its response. Whatever stands in front of the gate, and has methods of its own there, is called as if nothing were between.
 */
export class Interposition {
  readonly #response: ServerResponse;
  /** The response's methods as they were before, which need not be Node's. */
  readonly #before: Methods;
  /** Calls that are on their way down: what stands there asks the response what is so, not what the handler is to think. */
  #below = 0;
  #isOver = false;

  constructor(response: ServerResponse, { methods, head, seen }: Interposed) {
    this.#response = response;
    const all: Record<MethodName, Method> = {
      ...methods,
      // Asked by whoever sees that Node has no head yet: Node itself, and express-session.
      _implicitHeader: () => (this.#below > 0 ? this.call('_implicitHeader') : head()),
      // Compression in front would hand such a listener to its own stream, which does not hear of what is held back here.
      on: (event, listener) =>
        event === 'drain'
          ? Reflect.apply(EventEmitter.prototype.on, response, [event, listener])
          : this.call('on', event, listener),
    };
    const names = Object.keys(all) as MethodName[];
    const now = response as unknown as Methods;
    this.#before = Object.fromEntries(names.map((name) => [name, now[name]])) as Methods;
    for (const name of names) {
      // HTTP/2 has no implicit head.
      if (this.#before[name] === undefined) continue;
      const own: Method = (...args) => (this.#isOver ? this.call(name, ...args) : all[name](...args));
      Object.assign(response, { [name]: own });
    }
    // What is held back was written, as far as the handler is concerned.
    for (const name of Object.keys(seen) as Seen[]) {
      const get = (): unknown => (this.#below > 0 ? this.#really(name) : seen[name]());
      Object.defineProperty(response, name, { get, configurable: true });
    }
  }

  /** The response is left to itself again. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Calls what was there before. */
  call(name: MethodName, ...args: unknown[]): unknown {
    const method = this.#before[name] as Method;
    if (!DOWNWARD.includes(name)) return Reflect.apply(method, this.#response, args);
    this.#below++;
    try {
      return Reflect.apply(method, this.#response, args);
    } finally {
      this.#below--;
    }
  }

  /** From now on Node asks those in front for the head by itself. */
  leaveHead(): void {
    this.#response.writeHead = this.#before.writeHead as ServerResponse['writeHead'];
  }

  leave(): void {
    this.#isOver = true;
    for (const name of ['headersSent', 'writableEnded']) Reflect.deleteProperty(this.#response, name);
  }

  /** Of the response as it would be without us. */
  #really(name: Seen): unknown {
    return Reflect.get(Object.getPrototypeOf(this.#response), name, this.#response);
  }
}
