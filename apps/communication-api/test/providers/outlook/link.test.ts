import { expect, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import type { AwayStep, LinkContext, LinkFlow } from '../../../src/providers/link-flow.ts';
import type { OAuthCredentials } from '../../../src/providers/oauth/credentials.ts';
import { createOutlook } from '../../../src/providers/outlook/outlook.ts';
import { directNet, type MicrosoftUser, signIn, startMicrosoft } from '../../support/microsoft.ts';

const microsoft = await startMicrosoft();
const flowOf = (environment: Readonly<Record<string, string>> = {}): LinkFlow => {
  const [outlook] = createOutlook(readConfig({ ...microsoft.environment, ...environment }));
  if (outlook?.link === undefined) throw new Error('There is no provider.');
  return outlook.link;
};

let attempts = 0;
const contextOf = (given: Partial<LinkContext> = {}): LinkContext => ({
  ...{ loginHint: undefined, reconnect: undefined, offered: ['outlook'], proxy: undefined, settings: {} },
  net: directNet,
  callbackUrl: 'http://127.0.0.1:8080/auth/callback',
  callbackState: `state-${++attempts}`,
  now: Date.now(),
  signal: AbortSignal.timeout(10_000),
  ...given,
});

/** Goes to Microsoft and back. */
async function link(user: MicrosoftUser, flow = flowOf(), context = contextOf()) {
  const state = await flow.begin(context);
  const { url } = flow.stepOf(state, context) as AwayStep;
  const { search } = await signIn(microsoft, user, url);
  return { url: new URL(url), answer: await flow.submit(state, { query: search.slice(1) }, context) };
}

test('without a client at Microsoft, there is no provider', () => {
  expect(createOutlook(readConfig({}))).toEqual([]);
});

test('the issuer is that of the tenant, and permissions are those of OUTLOOK_SCOPES', async () => {
  const { url } = await link(microsoft.user());
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    ...{ client_id: 'client', response_type: 'code', code_challenge_method: 'S256', prompt: 'select_account' },
    scope: 'openid profile email offline_access Mail.ReadWrite Mail.Send',
  });
  const less = await link(microsoft.user(), flowOf({ OUTLOOK_SCOPES: 'send' }));
  expect(less.url.searchParams.get('scope')).toBe('openid profile email offline_access Mail.Send');
  expect(less.answer).toMatchObject({ kind: 'identified' });
});

test('the account is the user’s id at Microsoft, and its name is the address', async () => {
  const user = microsoft.user('ann@contoso.example');
  const { answer } = await link(user);
  expect(answer).toMatchObject({
    kind: 'identified',
    account: { providerUserId: user.oid, name: 'ann@contoso.example', credentials: { scope: user.scope } },
  });
  const { account } = answer as { account: { credentials: OAuthCredentials } };
  expect(account.credentials.expiresAt).toBeGreaterThan(Date.now());
});

test('Microsoft may name the permissions with the address of Graph', async () => {
  const user = microsoft.user();
  user.scope = 'openid profile email https://graph.microsoft.com/mail.readwrite https://graph.microsoft.com/Mail.Send';
  expect((await link(user)).answer).toMatchObject({ kind: 'identified' });
});

test('a permission that was not given can be given by the next attempt', async () => {
  const user = microsoft.user();
  user.scope = 'openid profile email Mail.Send';
  const { answer } = await link(user);
  expect(answer).toMatchObject({
    kind: 'invalid',
    faults: [{ message: { en: expect.stringContaining('permissions') } }],
  });
});

test.each(['MailboxNotEnabledForRESTAPI', 'ErrorNonExistentMailbox'])(
  'a user without a mailbox is told so (%s)',
  async (code) => {
    microsoft.graph.trouble('me.GetMailFolders', { status: 404, code });
    const { answer } = await link(microsoft.user());
    expect(answer).toMatchObject({
      kind: 'invalid',
      faults: [{ message: { en: expect.stringContaining('no mailbox') } }],
    });
  },
);

test('a user who refuses can try again', async () => {
  const [flow, context] = [flowOf(), contextOf()];
  const state = await flow.begin(context);
  const query = `error=access_denied&state=${context.callbackState}`;
  expect(await flow.submit(state, { query }, context)).toMatchObject({ kind: 'invalid' });
});
