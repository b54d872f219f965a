/** The requests that wait for their turn on connections. */
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import type { Exchange } from '../../src/exchange/exchange.ts';
import { Connection, WaitingRequests } from '../../src/server/connection.ts';

it('if too many requests wait on all connections together, the connection with the most is cut', () => {
  const all = new WaitingRequests();
  const open = (requests: number) => {
    const socket = new PassThrough();
    const connection = new Connection(socket, all);
    let started = 0;
    const send = () => {
      const exchange = {} as Exchange;
      connection.add(exchange);
      connection.whenTurn(exchange, () => started++);
    };
    for (let i = 0; i < requests; i++) send();
    return { socket, send, started: () => started };
  };
  const noisy = Array.from({ length: 63 }, () => open(4 + 256));
  const others = [open(4 + 128), open(4 + 128)];
  expect([...noisy, ...others].filter(({ socket }) => socket.destroyed)).toEqual([]);
  const polite = open(4 + 100);
  expect(polite.started()).toBe(4);
  expect(polite.socket.destroyed).toBe(false);
  expect(noisy.filter(({ socket }) => socket.destroyed)).toHaveLength(1);
  expect(others.filter(({ socket }) => socket.destroyed)).toEqual([]);
  // That of a request past its own bound is cut itself.
  noisy[5]?.send();
  expect(noisy[5]?.socket.destroyed).toBe(true);
});
