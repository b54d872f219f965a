import { expect, test } from 'vitest';
import { checkAccount } from '../../src/cli/check-account.ts';
import { newId } from '../../src/domain/ids.ts';
import type { MailProvider, Provider, SentIds } from '../../src/providers/provider.ts';
import { linkAccount } from '../support/accounts.ts';
import { startGoogle } from '../support/google.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { startService } from '../support/service.ts';

const ids: SentIds = { providerId: '1', immutableId: null, thread: null, rejected: [] };
/** A provider that sends a draft as often as it is asked to, and finds nothing. */
const careless: MailProvider = {
  isFenced: () => true,
  draft: async () => 'draft',
  discard: async () => true,
  sendDraft: async () => ids,
  send: async () => ids,
  find: async ({ draft }) => (draft === null ? undefined : { ...ids, providerId: 'other' }),
  parent: async () => undefined,
};
const plugIn: Provider = { name: 'telegram', title: 'Careless', supports: new Set(['emails']), mail: careless };

const google = await startGoogle();
const microsoft = await startMicrosoft();
const service = await startService({ ...google.environment, ...microsoft.environment }, { providers: [plugIn] });
const application = await service.application();

const check = async (id: string, to?: string) => {
  const lines: string[] = [];
  const write = (text: string): void => void lines.push(text);
  const code = await checkAccount(service.rooms, id, to, { out: write, error: write });
  return { code, text: lines.join('') };
};
const sorted = (text: string) => ({ ok: text.match(/^ok /gm)?.length ?? 0, fail: text.match(/^FAIL /gm)?.length ?? 0 });

test.each(['no', 'silently'] as const)(
  'a Google account does what it must (Message-IDs replaced: %s)',
  async (replaces) => {
    google.replacesMessageIds = replaces;
    const email = `${replaces}@gmail.example`;
    google.addUser(email);
    const secret = { credentials: await google.credentials(email) };
    const account = await linkAccount(service.rooms, application.id, { provider: 'google', name: email, secret });
    const { code, text } = await check(account.id, 'bob@example.com');
    expect(text).toContain(replaces === 'no' ? 'keeps the Message-ID' : 'replaces the Message-ID');
    expect({ code, ...sorted(text) }).toEqual({ code: 0, ok: 7, fail: 0 });
    expect(text).toMatch(/bob@example\.com must have got exactly 2 emails with "Check [0-9a-f]{8}" in the subject/);
    const sent = google.sent(email);
    expect(sent.map(({ mime }) => /^Subject: (.*)\r$/m.exec(mime)?.[1]?.slice('Check 12345678: '.length))).toEqual([
      'first',
      'reply',
    ]);
    expect(google.drafts(email)).toBe(0);
  },
);

test.each(['Mail.ReadWrite Mail.Send', 'Mail.Send'])('an Outlook account does what it must (%s)', async (scope) => {
  const user = microsoft.user();
  user.scope = scope;
  const secret = { credentials: microsoft.credentialsOf(user) };
  const account = await linkAccount(service.rooms, application.id, { provider: 'outlook', name: user.email, secret });
  const { code, text } = await check(account.id, 'bob@example.com');
  const drafts = scope !== 'Mail.Send';
  expect({ code, ...sorted(text) }).toEqual({ code: 0, ok: drafts ? 7 : 1, fail: 0 });
  expect(user.mailbox.delivered).toHaveLength(drafts ? 2 : 1);
  expect(user.mailbox.drafts).toEqual([]);
});

test('an account that has to be linked again is a failure, which is explained', async () => {
  const email = 'ended@gmail.example';
  google.addUser(email);
  const secret = { credentials: await google.credentials(email) };
  const account = await linkAccount(service.rooms, application.id, { provider: 'google', name: email, secret });
  google.forgetTokens(email, 'all');
  const { code, text } = await check(account.id);
  expect(code).toBe(1);
  expect(text).toMatch(/^FAIL {2}401 errors\/disconnected_account: .*Reconnect/m);
  expect(text).toContain('exactly 0 emails');
});

test('an account of Outlook does what it must', async () => {
  const user = microsoft.user();
  const secret = { credentials: microsoft.credentialsOf(user) };
  const account = await linkAccount(service.rooms, application.id, { provider: 'outlook', name: user.email, secret });
  const { code, text } = await check(account.id, 'bob@example.com');
  expect({ code, ...sorted(text) }).toEqual({ code: 0, ok: 7, fail: 0 });
  expect(user.mailbox.delivered).toHaveLength(2);
  // The double reports that a draft was sent twice. The check does this on purpose: only Microsoft can show what follows.
  const { faults } = microsoft.graph;
  expect((faults as string[]).splice(0).filter((fault) => !fault.includes('not a draft'))).toEqual([]);
});

test.each([true, false])('the mock does what it must (drafts: %s)', async (drafts) => {
  const { id } = await linkAccount(service.rooms, application.id, { secret: { credentials: { drafts } } });
  const { code, text } = await check(id, 'bob@example.com');
  expect({ code, ...sorted(text) }).toEqual({ code: 0, ok: drafts ? 7 : 3, fail: 0 });
});

test('a provider that sends a draft twice, or finds what is not there, fails', async () => {
  const { id } = await linkAccount(service.rooms, application.id, { provider: 'telegram' });
  const { code, text } = await check(id);
  expect(code).toBe(1);
  expect(text).toMatch(/^FAIL {2}of two attempts .* \(2 did\)$/m);
  expect(text).toMatch(/^FAIL {2}a draft that was deleted is not sent$/m);
  expect(sorted(text)).toEqual({ ok: 0, fail: 6 });
});

test('an account that does not exist is a mistake of the operator', async () => {
  await expect(check(newId('acc', Date.now()))).rejects.toMatchObject({ exitCode: 2 });
  await expect(check('x')).rejects.toMatchObject({ exitCode: 2 });
});
