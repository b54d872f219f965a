import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { streamOf } from './http.ts';

type Listener = (...args: unknown[]) => void;
type AddListener = (event: string | symbol, listener: Listener) => Duplex;
/** Without `prependListener`: Bun's server itself uses it to learn that a response will be closed. */
const ADD_METHODS = ['on', 'once', 'addListener'] as const;

/** The deferral on one connection, or on one stream of HTTP/2. Several responses share it if requests are pipelined. */
interface Deferral {
  responses: number;
  /** Calls of listeners that wait. */
  readonly calls: (() => void)[];
  restore(): void;
}

const DEFERRAL = Symbol('headgate.deferral');
const DESTROY_DEFERRED = Symbol('headgate.destroyDeferred');

/**
 * While a response is captured, code that starts to listen for the end of its connection is called only afterwards.
 * `sendFile` of Express and streams of Koa would stop at that event, and the rest of the response could not be stored
 * (I11).
 * @returns stops deferring, and calls the listeners that waited
 */
export function deferClose(response: ServerResponse & { __onFinished?: unknown }): () => void {
  const socket: Duplex & { [DEFERRAL]?: Deferral | undefined } = streamOf(response) ?? response.req.socket;
  // Both frameworks use the package on-finished, which adds one listener for all its callers. Without that one, later
  // callers add a new listener, and it is deferred.
  if (response.__onFinished) response.__onFinished = undefined;
  socket[DEFERRAL] ??= deferListeners(socket);
  const deferral = socket[DEFERRAL];
  deferral.responses++;
  return once(() => {
    if (--deferral.responses > 0) return;
    socket[DEFERRAL] = undefined;
    deferral.restore();
    for (const call of deferral.calls) call();
  });
}

/**
 * While a response is captured, destroying its connection without an error can wait. A destroy with an error happens at
 * once: that connection is broken anyway.
 * @param mustWait called for each destroy without an error; returns true if it must wait
 * @returns stops deferring, and destroys the connection if that waited
 */
export function deferDestroy(response: ServerResponse, mustWait: () => boolean): () => void {
  const socket: Socket & { [DESTROY_DEFERRED]?: boolean } = response.req.socket;
  if (streamOf(response) !== undefined || socket[DESTROY_DEFERRED] === true) return () => {};
  const restore = restorer(socket, ['destroy']);
  const { destroy } = socket;
  let isWaiting = false;
  socket[DESTROY_DEFERRED] = true;
  socket.destroy = (error) => {
    if ((error !== undefined && error !== null) || !mustWait()) return Reflect.apply(destroy, socket, [error]);
    isWaiting = true;
    return socket;
  };
  return () => {
    socket[DESTROY_DEFERRED] = false;
    restore();
    if (isWaiting) socket.destroySoon();
  };
}

function deferListeners(socket: Duplex): Deferral {
  const deferral: Deferral = { responses: 0, calls: [], restore: restorer(socket, ADD_METHODS) };
  const deferred = (listener: Listener): Listener => {
    const call: Listener = (...args) => {
      if (deferral.responses === 0) listener.apply(socket, args);
      else deferral.calls.push(() => listener.apply(socket, args));
    };
    // An emitter finds the wrapper by this property when the listener is removed.
    return Object.assign(call, { listener });
  };
  for (const name of ADD_METHODS) {
    const add = socket[name].bind(socket) as AddListener;
    const value: AddListener = (event, listener) =>
      add(event, event === 'close' || event === 'error' ? deferred(listener) : listener);
    Object.defineProperty(socket, name, { value, configurable: true, writable: true });
  }
  return deferral;
}

/** Puts members back exactly as they are now, own properties or inherited ones. */
function restorer(target: object, names: readonly string[]): () => void {
  const before = names.map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (hasRun) return;
    hasRun = true;
    run();
  };
}
