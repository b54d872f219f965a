/** `headgate limits` shows and changes the limits of a running gateway. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { runLimits } from '../../src/cli/limits.ts';
import { UsageError } from '../../src/cli/usage.ts';
import { type AdminGateway, startAdminGateway, TOKENS } from '../support/admin.ts';
import { freePort } from '../support/gateway.ts';

let gateway: AdminGateway;
beforeAll(async () => {
  gateway = await startAdminGateway('http://127.0.0.1:1', { adjustments: {} });
});
afterAll(() => gateway.stop());

async function limits(args: readonly string[], token: string = TOKENS.operator) {
  const printed = { out: '', error: '' };
  const terminal = {
    out: (text: string) => {
      printed.out += text;
    },
    error: (text: string) => {
      printed.error += text;
    },
  };
  const env = { HEADGATE_ADMIN_URL: `http://127.0.0.1:${gateway.adminPort}`, HEADGATE_ADMIN_TOKEN: token };
  const code = await runLimits(args, terminal, env);
  return { code, ...printed, value: printed.out === '' ? undefined : JSON.parse(printed.out) };
}

it('puts, gets, lists, exports and resets a limit, and shows its history', async () => {
  const target = ['--account', 'acc_1', '--route', 'GET /api/v1/chats'];
  const dry = await limits(['put', '900/1m', ...target, '--dry-run']);
  expect(dry.value.changes[0]).toMatchObject({ before: null, after: ['900/1m'] });
  const put = ['put', '900/1m', '5000/1d', ...target, '--reason', 'INC-12', '--for-ms', '60000', '--if-version', '0'];
  expect((await limits([...put, '--wait'])).value).toMatchObject({
    effective: ['900/1m', '5000/1d'],
    adjusted: { version: 1, by: 'olaf', reason: 'INC-12' },
    applied: { missing: [] },
  });
  expect((await limits(['get', ...target])).value.adjusted.version).toBe(1);
  expect((await limits(['list', '--account', 'acc_1'])).value.limits).toHaveLength(1);
  expect((await limits(['list', '--account', 'acc_2'])).value.limits).toEqual([]);
  expect((await limits(['list'])).value.limits).toHaveLength(2);
  expect((await limits(['export'])).value.accounts.acc_1.routes).toEqual({
    'GET /api/v1/chats': ['900/1m', '5000/1d'],
  });
  expect(await limits(put)).toMatchObject({ code: 1, out: '', error: expect.stringMatching(/status 412: .*by olaf/) });
  expect((await limits(['reset', ...target, '--reason', 'over'])).value.adjusted).toBeNull();
  expect((await limits(['history', ...target])).value.entries).toMatchObject([
    { version: 2, reason: 'over' },
    { version: 1, reason: 'INC-12' },
  ]);
});

it('blocks an account or a route, shows the block, and lifts it', async () => {
  const target = ['--account', 'acc_3', '--route', 'GET /api/v1/chats'];
  const block = await limits(['block', ...target, '--for-ms', '60000', '--reason', 'Unpaid.']);
  expect(block).toMatchObject({
    code: 0,
    value: { account: 'acc_3', route: 'GET /api/v1/chats', blocked: { scope: 'route', reason: 'Unpaid.' } },
  });
  expect((await limits(['blocked', ...target])).value.blocked).toMatchObject({ reason: 'Unpaid.' });
  expect((await limits(['blocked', '--account', 'acc_3'])).value.blocked).toBeNull();
  expect((await limits(['unblock', ...target, '--reason', 'paid'])).value.blocked).toBeNull();
  await expect
    .poll(() => gateway.lines().find(({ msg }) => msg === 'account unblocked'))
    .toMatchObject({ by: 'olaf', reason: 'paid' });
  const wrong = await limits(['block', '--account', 'acc_3', '--for-ms', '0']);
  expect(wrong).toMatchObject({ code: 1, error: expect.stringMatching(/status 422: forMs: /) });
});

it('a block with --reset gives the account a fresh start', async () => {
  const target = ['--account', 'acc_3'];
  expect(await limits(['block', ...target, '--for-ms', '50000', '--reset'])).toMatchObject({ code: 0 });
  const isBlock = ({ msg, forMs }: { msg?: unknown; forMs?: unknown }) => msg === 'account blocked' && forMs === 50_000;
  await expect.poll(() => gateway.lines().find(isBlock)).toMatchObject({ by: 'olaf', reset: true });
  await limits(['unblock', ...target]);
});

it('what the gateway refuses is 1 with its reason, without the token', async () => {
  const refused = await limits(['put', '9/1m'], TOKENS.viewer);
  expect(refused).toMatchObject({ code: 1, error: expect.stringContaining('needs the role operator') });
  expect(refused.error).not.toContain(TOKENS.viewer);
  const url = `http://127.0.0.1:${await freePort()}`;
  const away = await limits(['list', '--admin', url]);
  expect(away).toMatchObject({ code: 1, error: `headgate: ${url}: ECONNREFUSED\n` });
});

it.each<[string[], RegExp]>([
  [[], /needs an action \(use list, get, put, reset, history, export, block, unblock or blocked\)/],
  [['put'], /needs windows such as 10\/1m/],
  [['list', '9/1m'], /unexpected "9\/1m": limits list takes only flags/],
  [['list', '--route', 'GET /x'], /--route is not for limits list/],
  [['get', '--reason', 'x'], /--reason is not for limits get/],
  [['reset', '--confirm'], /--confirm is not for limits reset/],
  [['block', '--for-ms', '1'], /limits block needs --account/],
  [['unblock', '--route', 'GET /x'], /limits unblock needs --account/],
  [['block', '--account', 'a'], /limits block needs --for-ms, such as 3600000 for an hour/],
  [['block', '--account', 'a', '--provider', 'p'], /--provider is not for limits block/],
  [['blocked', '--account', 'a', '--reason', 'x'], /--reason is not for limits blocked/],
  [['put', '9/1m', '--for-ms', '1h'], /--for-ms must be a whole number/],
  [['list', '--admin', 'localhost'], /--admin must be a URL/],
  [['list', '--token-file', '/does/not/exist'], /--token-file: /],
  [['list', '--tokn'], /Unknown option '--tokn'/],
])('%j is a wrong command line', async (args, message) => {
  await expect(limits(args)).rejects.toThrow(UsageError);
  await expect(limits(args)).rejects.toThrow(message);
});

it('is a command of headgate', async () => {
  let text = '';
  const add = (part: string) => {
    text += part;
  };
  const terminal = { out: add, error: add };
  expect(await runCli(['limits'], terminal)).toBe(2);
  expect(text).toMatch(/limits needs an action/);
  expect(await runCli(['limits', '--help'], terminal)).toBe(0);
  expect(text).toContain('headgate limits list|get|put');
});
