import { fileURLToPath } from 'node:url';
import type { LinkStep, StepValues } from '../../src/providers/link-flow.ts';
import { loadPlugins } from '../../src/providers/plugins.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { startMessenger } from '../support/messenger.ts';
import { providerSuite } from '../support/provider-suite.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

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
