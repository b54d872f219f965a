/** S1 to S9 as a client of the process sees them: only headers, real time, short windows. */

import { pause, type Reply } from 'headgate-testbed/raw-http';
import { answer } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, NO_RATES, ratesOf } from '../support/gateway.ts';

const ACCOUNTS = {
  acc_1: { allMethods: ['1000/1d'], routes: { 'GET /api/v1/chats': ['2/1m', '10/1h'] } },
  acc_2: { allMethods: ['2/3s', '100/1d'], routes: { 'GET /api/v1/chats': ['3/1m'] } },
  acc_3: { allMethods: ['1/3s', '3/1d'], routes: {} },
  acc_4: { allMethods: [], routes: { 'GET /api/v1/chats': ['5/1m', '7/1h'] } },
  acc_5: { allMethods: ['0/1m'] },
  acc_6: { allMethods: ['3/1m'] },
  acc_7: { allMethods: ['1/4s'] },
  acc_8: { allMethods: ['5/4500ms'] },
  acc_9: { allMethods: ['5/7h', '2/3m', '8/40d'] },
};

const { upstream, gateway } = await gatewayForFile(configOf, { limits: { accounts: ACCOUNTS } });

const ask = (account: string, method = 'GET'): Promise<Reply> =>
  gateway.ask(method, `/api/v1/chats?account_id=${account}`);

async function askTimes(times: number, account: string): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let i = 0; i < times; i += 1) replies.push(await ask(account));
  return replies;
}

it('S6: an accepted answer shows the last window, a 429 shows the one that rejected', async () => {
  const [first, second, third] = await askTimes(3, 'acc_1');
  expect(first?.status).toBe(200);
  expect(ratesOf(first as Reply)).toEqual({ limit: 1000, remaining: 999, reset: 86_400, retryAfter: undefined });
  expect(ratesOf(second as Reply)).toMatchObject({ limit: 1000, remaining: 998 });
  const problem = expectProblem(third as Reply, 429, 'api/too_many_requests');
  expect(problem.title).toEqual(expect.any(String));
  expect(ratesOf(third as Reply)).toMatchObject({ limit: 2, remaining: 0 });
});

/** As many as a window of three or four seconds has left. */
const SOME_SECONDS = expect.toSatisfy((seconds: number) => [2, 3, 4].includes(seconds));

// These wait for the ends of windows, each with an account of its own.
it.concurrent('S5: a request rejected by the limit for all methods is not charged to the route-specific limit', async () => {
  const statuses = (await askTimes(7, 'acc_2')).map((reply) => reply.status);
  expect(statuses).toEqual([200, 200, 429, 429, 429, 429, 429]);
  await pause(3_000);
  expect((await ask('acc_2')).status).toBe(200);
  const overRoute = await ask('acc_2');
  expectProblem(overRoute, 429, 'api/too_many_requests');
  expect(ratesOf(overRoute)).toMatchObject({ limit: 3, remaining: 0 });
});

it.concurrent('S5: a request rejected by the short window is not charged to the long one', async () => {
  const [first, ...rejected] = await askTimes(5, 'acc_3');
  expect(ratesOf(first as Reply)).toMatchObject({ limit: 3, remaining: 2 });
  for (const reply of rejected)
    expect(ratesOf(reply)).toMatchObject({ limit: 1, remaining: 0, retryAfter: SOME_SECONDS });
  await pause(3_000);
  expect(ratesOf(await ask('acc_3'))).toMatchObject({ limit: 3, remaining: 1 });
});

it.concurrent('S7, S8: a request after retry-after is accepted, one second earlier it is not', async () => {
  expect((await ask('acc_7')).status).toBe(200);
  const rejected = await ask('acc_7');
  const at = performance.now();
  const { retryAfter = 0, reset } = ratesOf(rejected);
  expect([rejected.status, retryAfter]).toEqual([429, SOME_SECONDS]);
  expect(reset).toBe(retryAfter);
  await pause((retryAfter - 1) * 1_000 - (performance.now() - at));
  const tooEarly = await ask('acc_7');
  expect(ratesOf(tooEarly)).toMatchObject({ remaining: 0, reset: 1, retryAfter: 1 });
  await pause(retryAfter * 1_000 - (performance.now() - at));
  const passed = await ask('acc_7');
  expect(passed.status).toBe(200);
  expect(ratesOf(passed).retryAfter).toBeUndefined();
});

it.concurrent('S4, S7: reset is rounded up, and the window never moves', async () => {
  const first = await ask('acc_8');
  const at = performance.now();
  expect(ratesOf(first)).toMatchObject({ limit: 5, remaining: 4, reset: 5 });
  await pause(900);
  expect(ratesOf(await ask('acc_8'))).toMatchObject({ remaining: 3, reset: 4 });
  await pause(4_510 - (performance.now() - at));
  expect(ratesOf(await ask('acc_8'))).toMatchObject({ remaining: 4, reset: 5 });
});

it("S6: without a limit for all methods, the route limit's longest window is shown", async () => {
  expect(ratesOf(await ask('acc_4'))).toEqual({ limit: 7, remaining: 6, reset: 3_600, retryAfter: undefined });
});

it('S6: no plan, no header', async () => {
  const reply = await ask('acc_4', 'POST');
  expect(reply.status).toBe(200);
  expect(ratesOf(reply)).toEqual(NO_RATES);
});

it('S8, S9: max 0 rejects always with 422, its reset is its whole duration, and waiting does not help', async () => {
  for (const reply of await askTimes(3, 'acc_5')) {
    expectProblem(reply, 422, 'api/cost_exceeds_limit');
    expect(ratesOf(reply)).toEqual({ limit: 0, remaining: 0, reset: 60, retryAfter: undefined });
  }
  // A line can come after its answer.
  await expect.poll(() => gateway.log()).toContainEqual(expect.objectContaining({ status: 422, decision: 'rejected' }));
});

it('S1: each route has its own count for all methods, and accounts never share', async () => {
  expect(ratesOf(await ask('acc_6'))).toMatchObject({ limit: 3, remaining: 2 });
  expect(ratesOf(await ask('acc_6'))).toMatchObject({ remaining: 1 });
  expect(ratesOf(await ask('acc_6', 'POST'))).toMatchObject({ limit: 3, remaining: 2 });
  const byPath = await gateway.ask('GET', '/api/v1/accounts/acc_6/chats');
  expect(ratesOf(byPath)).toMatchObject({ limit: 3, remaining: 2 });
  const byHeader = await gateway.ask('POST', '/api/v1/messages', { 'x-account-id': 'acc_6' });
  expect(ratesOf(byHeader)).toMatchObject({ limit: 3, remaining: 2 });
});

it('S2, S3: windows are ordered by duration, for any number and notation', async () => {
  const [first, , third] = await askTimes(3, 'acc_9');
  expect(ratesOf(first as Reply)).toMatchObject({ limit: 8, remaining: 7, reset: 40 * 86_400 });
  expect(third?.status).toBe(429);
  expect(ratesOf(third as Reply)).toMatchObject({ limit: 2, remaining: 0 });
});

it("answers: our headers replace the upstream's on its 4xx and 5xx too", async () => {
  const theirs = { 'x-ratelimit-limit': '9', 'X-RateLimit-Remaining': '8', 'x-ratelimit-reset': '7' };
  for (const status of [200, 400, 404, 500, 503]) {
    upstream.behave(answer({ status, headers: theirs }));
    const reply = await ask('acc_1', 'POST');
    expect(reply.status).toBe(status);
    expect(ratesOf(reply)).toMatchObject({ limit: 1000, retryAfter: undefined });
    expect(ratesOf(reply).remaining).toBeGreaterThan(900);
  }
  upstream.behave(answer());
});

it("answers: on an unlimited route the upstream's own are passed on", async () => {
  upstream.behave(
    answer({ headers: { 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '8', 'x-ratelimit-reset': '7' } }),
  );
  expect(ratesOf(await gateway.ask('GET', '/api/v1/open'))).toEqual({ ...NO_RATES, limit: 9, remaining: 8, reset: 7 });
  upstream.behave(answer());
});
