import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/config.ts';
import { createGoogle } from '../../src/providers/google/google.ts';
import { createImap } from '../../src/providers/imap/imap.ts';
import type { AwayStep, LinkStep, StepValues } from '../../src/providers/link-flow.ts';
import { createOutlook } from '../../src/providers/outlook/outlook.ts';
import { loadPlugins } from '../../src/providers/plugins.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDovecot } from '../support/dovecot.ts';
import { startGoogle } from '../support/google.ts';
import { startMessenger } from '../support/messenger.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { providerSuite, SUITE_CALLBACK } from '../support/provider-suite.ts';
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

providerSuite('google', 'drafts', async () => {
  const google = await startGoogle();
  google.allowRedirect(SUITE_CALLBACK);
  google.addUser('ann@gmail.example');
  const { clientId, clientSecret, url } = google;
  return {
    provider: createGoogle({
      ...{ clientId, clientSecret, issuer: url, apiUrl: url },
      ...{ permissions: 'drafts', clock: Date.now },
    }),
    act: async (step) => queryOf(await google.consent((step as AwayStep).url, 'ann@gmail.example')),
    delivered: async (messageId) =>
      google.sent('ann@gmail.example').filter((message) => message.message_id === messageId).length,
  };
});

providerSuite('outlook', 'drafts', async () => {
  const microsoft = await startMicrosoft();
  const user = microsoft.user();
  const [provider] = createOutlook(readConfig(microsoft.environment));
  return {
    provider: provider as Provider,
    act: async (step) => {
      microsoft.signsIn(user);
      const { headers } = await fetch((step as AwayStep).url, { redirect: 'manual' });
      return queryOf(new URL(headers.get('location') ?? ''));
    },
    delivered: async (messageId) => user.mailbox.delivered.filter(({ mime }) => mime.includes(messageId)).length,
  };
});

/** With what a provider's own site has sent the user back. */
const queryOf = ({ search }: URL): StepValues => ({ query: search.slice(1) });

providerSuite('the example of a plug-in', 'not', async () => {
  const messenger = await startMessenger();
  process.env.MESSENGER_URL = messenger.url;
  const [provider] = await loadPlugins([fileURLToPath(new URL('../../examples/messenger.mjs', import.meta.url))]);
  const values: Readonly<Record<string, StepValues>> = {
    start: { number: '+49 30 901820' },
    captcha: { letters: messenger.letters },
    code: { code: messenger.code },
  };
  return { provider: provider as Provider, act: ({ name }) => values[name] ?? {} };
});
