/** S19: pipelined requests, and many at once. */
import { Agent } from 'node:http';
import { openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { answer } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, ratesOf, TOKEN } from '../support/gateway.ts';

const ACCOUNTS = {
  acc_1: { allMethods: ['3/1m'] },
  acc_2: { allMethods: ['100/1m'] },
  acc_3: { allMethods: ['100/1m'] },
};
const { upstream, gateway } = await gatewayForFile(configOf, { limits: { accounts: ACCOUNTS } });

const chats = (account: string) => `/api/v1/chats?account_id=${account}`;

it('S19: limit 3, five pipelined requests: three are accepted with remaining 2, 1, 0, two get 429', async () => {
  upstream.behave(answer({ delayMs: 30 }));
  const connection = await openRaw(gateway.port);
  connection.write(rawRequest('GET', chats('acc_1'), { 'x-api-key': TOKEN }).repeat(5));
  const replies = await connection.waitFor(5);
  connection.destroy();
  upstream.behave(answer());
  expect(replies.map((reply) => reply.status)).toEqual([200, 200, 200, 429, 429]);
  expect(replies.map((reply) => ratesOf(reply).remaining)).toEqual([2, 1, 0, 0, 0]);
  for (const reply of replies.slice(3)) expectProblem(reply, 429, 'api/too_many_requests');
  expect(new Set(replies.map((reply) => reply.headers['x-request-id'])).size).toBe(5);
  expect(upstream.seen).toHaveLength(3);
});

it.each([
  ['one connection per request', 'acc_2', new Agent({ maxSockets: 500 })],
  ['twenty keep-alive connections', 'acc_3', new Agent({ keepAlive: true, maxSockets: 20 })],
])('500 parallel requests on a limit of 100, %s: exactly 100 reach the upstream', async (_title, account, agent) => {
  upstream.seen.length = 0;
  const replies = await Promise.all(
    Array.from({ length: 500 }, () => gateway.ask('GET', chats(account), {}, { agent })),
  );
  agent.destroy();
  const passed = replies.filter((reply) => reply.status === 200);
  expect(passed).toHaveLength(100);
  expect(replies.filter((reply) => reply.status === 429)).toHaveLength(400);
  expect(upstream.seen).toHaveLength(100);
  const remaining = passed.map((reply) => ratesOf(reply).remaining ?? -1).sort((a, b) => a - b);
  expect(remaining).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

it('a slow exchange does not delay others', async () => {
  let end: () => void = () => {};
  upstream.behave((seen, response) => {
    if (seen.url.includes('slow')) end = () => response.end('late');
    else response.end('at once');
  });
  const slow = gateway.ask('GET', `${chats('acc_4')}&slow`);
  for (let i = 0; i < 20; i += 1) expect((await gateway.ask('GET', '/api/v1/open')).text).toBe('at once');
  end();
  expect((await slow).text).toBe('late');
});
