import { expect, test } from 'vitest';
import { banner } from '../../src/cli/banner.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const FACTS = {
  url: 'http://127.0.0.1:8080',
  adminUrl: undefined,
  directory: '/srv/data',
  hasKeyFile: true,
  demonstration: undefined,
  hasApplication: true,
  nowMs: NOW,
};

test('the first start shows the token, the account, and two commands to paste', () => {
  const text = banner({ ...FACTS, demonstration: { token: 'ck_svc_dev_x', accountId: 'acc_1' } });
  expect(text).toContain('http://127.0.0.1:8080/docs');
  expect(text).toContain('/srv/data/master.key');
  const commands = text.replaceAll('\\\n', ' ').match(/^ *curl .*$/gm) ?? [];
  expect(commands).toHaveLength(2);
  const [send = '', link = ''] = commands;
  expect(send).toContain('-F account_id=acc_1');
  expect(send).toContain("-H 'X-API-KEY: ck_svc_dev_x'");
  expect(send).toMatch(/http:\/\/127\.0\.0\.1:8080\/api\/v1\/emails$/);
  expect(link).toMatch(/http:\/\/127\.0\.0\.1:8080\/v2\/auth\/link$/);
  const body = JSON.parse(/-d '([^']*)'/.exec(link)?.[1] ?? '');
  expect(body).toEqual({
    providers: 'mock',
    redirect_uri: 'http://127.0.0.1:8080/docs',
    expires_on: '2026-01-01T01:00:00.000Z',
  });
});

test('a later start says how to make another key', () => {
  const text = banner(FACTS);
  expect(text).toContain('create-key');
  expect(text).not.toContain('curl');
});

test('a server without an application says how to make the first one', () => {
  const text = banner({ ...FACTS, directory: undefined, hasApplication: false });
  expect(text).toContain('create-key --application NAME');
  expect(text).toContain('DATABASE_URL');
});
