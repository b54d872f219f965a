/**
 * No client gets a response to the request of another: whatever an upstream sends behind a response, before the next
 * request is written to the connection, never reaches that next request.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import { ConnectionPool } from '../../src/proxy/connection-pool.ts';
import { UpstreamRequest } from '../../src/proxy/upstream-request.ts';
import { mutatedResponse } from '../support/mutated-responses.ts';
import { readByUs } from '../support/read-response.ts';

const [PAIRS, FIRST] = NIGHTLY ? [100_000, Math.floor(Math.random() * 2 ** 31)] : [1_000, 1];
const EVIL = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-for: nobody\r\n\r\nevil';
const OWN = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-for: b\r\n\r\nown');
const EMPTY = Buffer.alloc(0);
const TAILS = [
  '',
  '',
  '',
  EVIL,
  EVIL.slice(0, 20),
  '\r\n',
  '\n',
  'x',
  '0\r\n\r\n',
  'HTTP/1.1 408 Request Timeout\r\n\r\n',
  `\r\n${EVIL}`,
];
/** When the tail comes. In halves: the second half comes when the next request was written. */
const MOMENTS = ['with it', 'a turn later', 'after it', 'in halves', 'in halves after it'] as const;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** An upstream on connections in memory. */
function startUpstream(answer: (head: string, socket: Duplex) => void) {
  const sockets: Duplex[] = [];
  const connect = (onReady: () => void): Socket => {
    const socket = new Duplex({
      read() {},
      write(bytes: Buffer, _encoding, done) {
        done();
        // The write is over before the upstream answers.
        setImmediate(() => answer(bytes.toString('latin1'), socket));
      },
    });
    sockets.push(socket);
    setImmediate(onReady);
    return socket as Socket;
  };
  return { connect, sockets };
}

interface Outcome {
  readonly status?: number;
  readonly for?: string | undefined;
  readonly body: string;
  readonly isWhole: boolean;
}

function send(pool: ConnectionPool, path: string): Promise<Outcome> {
  return new Promise((resolve) => {
    let seen: Pick<Outcome, 'status' | 'for'> = {};
    let body = '';
    const end = (isWhole: boolean) => resolve({ ...seen, body, isWhole });
    const message = { method: 'GET', head: `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`, body: null, isChunked: false };
    const applicant = { application: 'app', needsFresh: false };
    new UpstreamRequest(message, pool, applicant, {
      onSend() {},
      onUnsent() {},
      onHead({ status, fields }) {
        seen = { status, for: fields[fields.indexOf('x-for') + 1] };
      },
      onData(chunk) {
        body += chunk.toString('latin1');
      },
      onMore() {},
      onEnd: () => end(true),
      onError: () => end(false),
    }).send();
  });
}

/** Whether the last byte is the end of the response. */
function endsWith(bytes: Buffer): boolean {
  return readByUs({ bytes, at: 0, isHead: false })?.end === bytes.length;
}

it(`in ${PAIRS} pairs of requests on one connection, from seed ${FIRST}`, async () => {
  let reused = 0;
  for (let seed = FIRST; seed < FIRST + PAIRS; seed += 1) {
    const { bytes } = mutatedResponse(seed);
    const tail = Buffer.from(TAILS[seed % TAILS.length] as string);
    const moment = MOMENTS[Math.floor(seed / TAILS.length) % MOMENTS.length] as (typeof MOMENTS)[number];
    const isInHalves = moment.startsWith('in halves');
    const half = isInHalves ? Math.ceil(tail.length / 2) : tail.length;
    const soon = tail.subarray(0, half);
    // If the first half is the end of the response itself, nothing warns of the second, and HTTP/1 has no remedy.
    const ends = endsWith(Buffer.concat([bytes, soon]));
    const late = ends ? EMPTY : tail.subarray(half);
    const { connect, sockets } = startUpstream((head, socket) => {
      if (!head.startsWith('GET /a')) socket.push(Buffer.concat([socket === sockets[0] ? late : EMPTY, OWN]));
      else if (moment === 'with it' || moment === 'in halves') socket.push(Buffer.concat([bytes, soon]));
      else {
        socket.push(bytes);
        if (moment === 'a turn later') setImmediate(() => socket.push(soon));
      }
    });
    const pool = new ConnectionPool({ connect, maxConnections: 1, maxPerApplication: 1, idleMs: 60_000 });
    const first = send(pool, '/a');
    for (let turns = 0; turns < 4; turns += 1) await turn();
    const [connection] = sockets as [Duplex];
    if (moment.endsWith('after it') && !connection.destroyed) connection.push(soon);
    await turn();
    const wasOpen = !connection.destroyed;
    const second = send(pool, '/b');
    await turn();
    // The first response may go on to the end of the connection.
    if (pool.waiting > 0) connection.push(null);
    const told = `seed ${seed}, ${JSON.stringify(tail.toString())} ${moment}: ${JSON.stringify(bytes.toString('latin1'))}`;
    expect(await second, told).toEqual({ status: 200, for: 'b', body: 'own', isWhole: true });
    await first;
    if (wasOpen && sockets.length === 1) reused += 1;
    await pool.close();
  }
  // Connections without such bytes are used again.
  expect(reused).toBeGreaterThan(PAIRS / 100);
}, 600_000);
