/**
 * A gateway that stops says so on each connection: the last answer has `Connection: close`, and no connection is reset
 * under a request.
 */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { eventually, openRaw, pause, type RawConnection, rawRequest, send, tlsPorts } from 'headgate-testbed/raw-http';
import { answer, type Behaviour, held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { configOf, expectProblem, TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

const OPEN = '/api/v1/open';
const KEY = { 'x-api-key': TOKEN };
const get = (path = OPEN) => rawRequest('GET', path, KEY);

async function start(behaviour?: Behaviour, rest: Record<string, unknown> = {}) {
  const upstream = await startUpstream(behaviour);
  return { upstream, gateway: await startInProcess(configOf(upstream.url, rest)) };
}

/** Says how the connection ended: by FIN, or by an error such as a reset, or of a write after the end. */
function endOf({ socket }: RawConnection): Promise<string> {
  return new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once('close', () => resolve('FIN'));
  });
}

const connectionsOf = (connection: RawConnection) => connection.replies().map(({ headers }) => headers.connection);

it('an answer that was on its way says that its connection closes; one whose head was sent before cannot', async () => {
  const hold = held();
  const heads = held(async (_seen, response) => void response.end('rest'));
  const { gateway, upstream } = await start(async (seen, response, request) => {
    if (seen.url !== `${OPEN}?streamed`) return hold.behaviour(seen, response, request);
    response.write('head and ');
    await heads.behaviour(seen, response, request);
  });
  const [waiting, streamed] = [await openRaw(gateway.port), await openRaw(gateway.port)];
  waiting.write(get());
  streamed.write(get(`${OPEN}?streamed`));
  await eventually(() => hold.waiting() === 1 && streamed.received().includes('head and '), 'both at the upstream');
  const ends = [endOf(waiting), endOf(streamed)];
  const stopped = gateway.stop();
  hold.release();
  await waiting.waitFor(1);
  expect(connectionsOf(waiting)).toEqual(['close']);
  // The client was told that the connection stays open, so it sends the next request as soon as it has the answer.
  heads.release();
  await streamed.waitFor(1);
  streamed.write(get());
  const [, refused] = await streamed.waitFor(2);
  expectProblem(refused as never, 503, 'errors/service_unavailable');
  expect(connectionsOf(streamed)).toEqual(['keep-alive', 'close']);
  expect(refused?.headers['retry-after']).toBe('1');
  expect(await Promise.all(ends)).toEqual(['FIN', 'FIN']);
  expect(await stopped).toBe(0);
  expect(upstream.seen).toHaveLength(2);
});

it('of pipelined requests only the last answer closes the connection, and none is lost', async () => {
  const hold = held(async (seen, response, request) => answer({ body: seen.url })(seen, response, request));
  const { gateway } = await start(hold.behaviour);
  const connection = await openRaw(gateway.port);
  const end = endOf(connection);
  // Four run, and two wait for their turn. Those are refused when it comes.
  connection.write(Array.from({ length: 6 }, (_, i) => get(`${OPEN}?n=${i}`)).join(''));
  await eventually(() => hold.waiting() === 4, 'four at the upstream');
  const stopped = gateway.stop();
  hold.release();
  const replies = await connection.waitFor(6);
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 503, 503]);
  expect(connectionsOf(connection)).toEqual([...Array(5).fill('keep-alive'), 'close']);
  expect(await end).toBe('FIN');
  expect(await stopped).toBe(0);
});

it('a request that arrives behind a running one takes its place as the last', async () => {
  const hold = held();
  const { gateway } = await start(hold.behaviour);
  const connection = await openRaw(gateway.port);
  connection.write(get());
  await eventually(() => hold.waiting() === 1, 'the request at the upstream');
  const stopped = gateway.stop();
  connection.write(rawRequest('GET', '/livez'));
  await eventually(async () => (await gateway.metrics()).includes('headgate_requests_running 2'), 'the second request');
  hold.release();
  expect((await connection.waitFor(2)).map(({ status }) => status)).toEqual([200, 200]);
  expect(connectionsOf(connection)).toEqual(['keep-alive', 'close']);
  expect(await stopped).toBe(0);
});

it('an idle connection gets an answer to a request of that moment; without one it is closed by FIN', async () => {
  const { gateway, upstream } = await start();
  const [busy, idle, half] = await Promise.all([1, 2, 3].map(() => openRaw(gateway.port)));
  if (busy === undefined || idle === undefined || half === undefined) throw new Error('no connections');
  for (const connection of [busy, idle]) connection.write(get());
  for (const connection of [busy, idle]) await connection.waitFor(1);
  half.write('GET /x HTTP/1.1\r\n');
  const ends = Promise.all([busy, idle, half].map(endOf));
  const stopped = gateway.stop();
  busy.write(get());
  await busy.waitFor(2);
  expect(busy.replies()[1]).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
  expect(await ends).toEqual(['FIN', 'FIN', 'FIN']);
  expect(await stopped).toBe(0);
  expect(upstream.seen).toHaveLength(2);
});

it('a client that sends its body after the 503 gets the whole answer and FIN, not a reset', async () => {
  const { gateway } = await start();
  const connection = await openRaw(gateway.port);
  connection.write(get());
  await connection.waitFor(1);
  const end = endOf(connection);
  const stopped = gateway.stop();
  connection.write(rawRequest('POST', OPEN, { ...KEY, 'content-length': '6' }));
  const [, refused] = await connection.waitFor(2);
  // Bytes that arrive at a closed connection are answered with a reset.
  await pause(50);
  expect(connection.socket.readableEnded).toBe(false);
  connection.write('later!');
  expectProblem(refused as never, 503, 'errors/service_unavailable');
  expect(refused?.headers.connection).toBe('close');
  expect(await end).toBe('FIN');
  expect(await stopped).toBe(0);
});

it('clients that use their connections all the time see 503 and Connection: close, and never a broken connection', async () => {
  const { gateway } = await start();
  const outcomes: string[] = [];
  let requests = 0;
  const client = async (): Promise<void> => {
    const agent = new (tlsPorts.has(gateway.port) ? TlsAgent : Agent)({ keepAlive: true, maxSockets: 1 });
    for (;;) {
      const reply = await send(gateway.port, { path: OPEN, headers: KEY, agent }).catch((error: Error) => error);
      requests++;
      if (!(reply instanceof Error) && reply.status === 200 && reply.headers.connection === 'keep-alive') continue;
      outcomes.push(reply instanceof Error ? reply.message : `${reply.status} ${reply.headers.connection}`);
      return agent.destroy();
    }
  };
  const clients = Array.from({ length: 16 }, client);
  await eventually(() => requests > 200, 'traffic on all connections', 20_000);
  const stopped = gateway.stop();
  await Promise.all(clients);
  expect(await stopped).toBe(0);
  expect(outcomes).toHaveLength(16);
  for (const outcome of outcomes) expect(outcome).toMatch(/^(200|503) close$/);
});
