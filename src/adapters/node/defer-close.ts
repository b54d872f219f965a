import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { streamOf } from './http.ts';

type Listener = (...args: unknown[]) => void;
type Add = (event: string | symbol, listener: Listener) => Duplex;
/** Not `prependListener`: by it Bun's server hears that a response is to be closed. */
const METHODS = ['on', 'once', 'addListener'] as const;

/** What is held on a connection, or a stream of HTTP/2, by however many answers at once: requests can be pipelined. */
interface Hold {
  holders: number;
  readonly late: (() => void)[];
  restore(): void;
}

const HOLD = Symbol('headgate.hold');

/**
 * While an answer is captured, whoever begins to listen for the end of the connection hears of it only afterwards. `sendFile` of Express and
 * streams of Koa would stop at it, and the rest of the answer could not be kept (I11).
 * @returns lets go
 */
export function holdClose(response: ServerResponse & { __onFinished?: unknown }): () => void {
  const socket: Duplex & { [HOLD]?: Hold | undefined } = streamOf(response) ?? response.req.socket;
  // The package on-finished, which both frameworks ask, listens once for all who ask it: those who ask from now on are to be told later.
  if (response.__onFinished) response.__onFinished = undefined;
  socket[HOLD] ??= begin(socket);
  const hold = socket[HOLD];
  hold.holders++;
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    if (--hold.holders > 0) return;
    socket[HOLD] = undefined;
    hold.restore();
    for (const tell of hold.late) tell();
  };
}

function begin(socket: Duplex): Hold {
  const before = METHODS.map((name) => [name, Object.getOwnPropertyDescriptor(socket, name)] as const);
  const hold: Hold = {
    holders: 0,
    late: [],
    restore() {
      for (const [name, descriptor] of before) {
        if (descriptor === undefined) Reflect.deleteProperty(socket, name);
        else Object.defineProperty(socket, name, descriptor);
      }
    },
  };
  const later = (listener: Listener): Listener => {
    const told: Listener = (...args) => {
      if (hold.holders === 0) listener.apply(socket, args);
      else hold.late.push(() => listener.apply(socket, args));
    };
    // By this an emitter finds it when the listener is to be taken off.
    return Object.assign(told, { listener });
  };
  for (const name of METHODS) {
    const add = socket[name].bind(socket) as Add;
    const isOurs = (event: string | symbol): boolean => event === 'close' || event === 'error';
    const own: Add = (event, listener) => add(event, isOurs(event) ? later(listener) : listener);
    Object.defineProperty(socket, name, { value: own, configurable: true, writable: true });
  }
  return hold;
}
