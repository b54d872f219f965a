import { text } from 'node:stream/consumers';
import { readConfig } from '../../src/config.ts';
import { createImap } from '../../src/providers/imap/imap.ts';
import type { AwayStep, LinkStep, StepValues } from '../../src/providers/link-flow.ts';
import { createOutlook } from '../../src/providers/outlook/outlook.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDovecot } from '../support/dovecot.ts';
import { loadMessenger, startMessenger } from '../support/messenger.ts';
import { signIn, startMicrosoft } from '../support/microsoft.ts';
import { providerSuite } from '../support/provider-suite.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { startSmtpServer } from '../support/smtp-server.ts';

for (const sending of ['drafts', 'directly'] as const)
  providerSuite(`the mock, ${sending}`, sending, async () => {
    const { db, rooms, application } = await startService();
    const { id } = await application();
    const account = await rooms.accounts.insert(id, {
      ...{ provider: 'mock', providerUserId: 'ann@mock.test', name: 'ann@mock.test' },
      ...{ scopeId: null, secret: { credentials: {} } },
    });
    return {
      provider: rooms.providers.find('mock') as Provider,
      accountId: account?.id ?? '',
      act: ({ name }: LinkStep): StepValues =>
        name === 'login'
          ? { address: 'ann@mock.test', password: secret(), behaviour: 'code', drafts: sending === 'drafts' }
          : { code: '123456' },
      delivered: async (messageId) =>
        (await db.selectFrom('mock_messages').select('id').where('message_id', '=', messageId).execute()).length,
    };
  });

providerSuite('imap', 'directly', async () => {
  const dovecot = await startDovecot();
  const received: string[] = [];
  const smtp = await startSmtpServer({
    onData: (stream, _, done) => void text(stream).then((message) => done(null, String(received.push(message)))),
  });
  const { address, password } = dovecot.user('ann@example.test');
  smtp.user(address, password);
  const server = { host: 'localhost', encryption: 'tls', user: address } as const;
  const settings = { imap: { ...server, port: dovecot.imapsPort }, smtp: { ...server, port: smtp.tlsPort } };
  const provider = createImap(async () => ({ kind: 'servers', settings }));
  cleanUpLater(() => provider.close());
  return {
    provider,
    act: () => ({ address, password }),
    delivered: async (messageId) => received.filter((message) => message.includes(messageId)).length,
  };
});

const microsoft = await startMicrosoft();
for (const [sending, scopes] of [
  ['drafts', 'drafts'],
  ['directly', 'send'],
] as const)
  providerSuite(`outlook, ${sending}`, sending, async () => {
    const [provider] = createOutlook(readConfig({ ...microsoft.environment, OUTLOOK_SCOPES: scopes }));
    const user = microsoft.user();
    if (sending === 'directly') user.scope = 'openid profile email Mail.Send';
    return {
      provider: provider as Provider,
      act: async (step: LinkStep): Promise<StepValues> => {
        const { search } = await signIn(microsoft, user, (step as AwayStep).url);
        return { query: search.slice(1) };
      },
      delivered: async (messageId) =>
        user.mailbox.delivered.filter(({ headers }) => headers.get('message-id') === messageId).length,
    };
  });

providerSuite('the example of a plug-in', 'not', async () => {
  const messenger = await startMessenger();
  const [provider] = await loadMessenger(messenger);
  const values: Readonly<Record<string, StepValues>> = {
    start: { number: '+49 30 901820' },
    captcha: { letters: messenger.letters },
    code: { code: messenger.code },
  };
  return { provider: provider as Provider, act: ({ name }) => values[name] ?? {} };
});
