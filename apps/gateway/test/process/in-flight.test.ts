/** S29: at most so many requests of an account run at the same time; every ending gives its place back. */

import { eventually, openRaw } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, NO_RATES, ratesOf, TOKEN } from '../support/gateway.ts';

const MAX = 2;
const { upstream, gateway } = await gatewayForFile(configOf, {
  upstreamTimeoutMs: 1_000,
  limits: {
    default: { allMethods: { windows: ['1000/1m'], inFlight: MAX } },
    accounts: { acc_9: { allMethods: { inFlight: 5 }, routes: { 'GET /api/v1/chats': { inFlight: 1 } } } },
  },
});

const ask = (account: string, method = 'GET') => gateway.ask(method, `/api/v1/chats?account_id=${account}`);
const rawGet = (account: string) =>
  `GET /api/v1/chats?account_id=${account} HTTP/1.1\r\nhost: x\r\nx-api-key: ${TOKEN}\r\n\r\n`;

/** The account has room for as many requests as it may run, and for no more. */
async function expectIdle(account: string): Promise<void> {
  const hold = held();
  upstream.reset();
  upstream.behave(hold.behaviour);
  const asked: ReturnType<typeof ask>[] = [];
  await eventually(async () => {
    const before = upstream.seen.length;
    asked.push(ask(account));
    await Promise.race([asked.at(-1), eventually(() => upstream.seen.length > before, 'it reached the upstream')]);
    return upstream.seen.length === MAX;
  }, 'as many requests run as may run');
  expect((await ask(account)).status).toBe(429);
  hold.release();
  await Promise.all(asked);
  upstream.behave(answer());
}

it('S29: one too many gets a 429 without retry-after and without fields; other accounts pass', async () => {
  const hold = held();
  upstream.behave(hold.behaviour);
  const running = [ask('acc_1'), ask('acc_1', 'POST')];
  await eventually(() => upstream.seen.length === 2, 'two requests run');
  const rejected = await ask('acc_1');
  expect(expectProblem(rejected, 429, 'api/too_many_requests').detail).toBe(
    '2 of at most 2 requests are running; retry when one has ended.',
  );
  expect(ratesOf(rejected)).toEqual(NO_RATES);
  const other = ask('acc_2');
  await eventually(() => upstream.seen.length === 3, 'another account runs');
  hold.release();
  expect((await Promise.all([...running, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
  // The rejected request charged nothing.
  expect(ratesOf(await ask('acc_1')).remaining).toBe(998);
  await expectIdle('acc_1');
});

it('S29: a layer has its own bound, and so has a route', async () => {
  const hold = held();
  upstream.reset();
  upstream.behave(hold.behaviour);
  const running = [ask('acc_9'), ask('acc_9', 'POST')];
  await eventually(() => upstream.seen.length === 2, 'two requests run');
  expect((await ask('acc_9')).status).toBe(429);
  running.push(ask('acc_9', 'POST'));
  await eventually(() => upstream.seen.length === 3, 'three requests run');
  hold.release();
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

it('S29: a client that leaves, a broken or late answer of the upstream, and a stream that ends give the place back', async () => {
  // The client leaves before the answer, and in the middle of it.
  for (const behaviour of [held().behaviour, answer({ chunks: ['one', 'two'], pauseMs: 5_000 } as never)]) {
    upstream.reset();
    upstream.behave(behaviour);
    const raws = await Promise.all([openRaw(gateway.port), openRaw(gateway.port)]);
    for (const raw of raws) raw.write(rawGet('acc_3'));
    await eventually(() => upstream.seen.length === MAX, 'the requests run');
    for (const raw of raws) raw.destroy();
    await expectIdle('acc_3');
  }
  // The upstream breaks off, before its answer and in the middle of it, or does not answer in time.
  upstream.behave((_, response) => void response.destroy());
  expect((await ask('acc_4')).status).toBe(503);
  await expectIdle('acc_4');
  upstream.behave((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('some');
    setTimeout(() => response.destroy(), 20);
  });
  await ask('acc_4').catch(() => {});
  await expectIdle('acc_4');
  upstream.behave(() => {});
  expect((await ask('acc_4')).status).toBe(504);
  await expectIdle('acc_4');
});

it('S29: 300 random endings leave no request in flight', async () => {
  upstream.reset();
  upstream.behave((_, response) => {
    const dice = Math.random();
    if (dice < 0.2) response.destroy();
    else if (dice < 0.4) {
      response.write('some');
      setTimeout(() => (dice < 0.3 ? response.destroy() : response.end('more')), 5);
    } else setTimeout(() => response.end('done'), 10 * dice);
  });
  const one = async (): Promise<void> => {
    for (let i = 0; i < 15; i++) {
      if (Math.random() < 0.3) {
        const raw = await openRaw(gateway.port);
        raw.write(rawGet('acc_5'));
        await new Promise((resolve) => setTimeout(resolve, 10 * Math.random()));
        raw.destroy();
      } else await ask('acc_5').catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: 20 }, one));
  await expectIdle('acc_5');
}, 30_000);
