import type { MockCredentials } from '../providers/mock/credentials.ts';
import type { Rooms } from '../rooms.ts';

const YEAR_MS = 31_536_000_000;
const ADDRESS = 'demo@mock.test';

/** The objects that the first start makes, so that there is something to try. */
export interface Demonstration {
  readonly token: string;
  readonly accountId: string;
}

/** Makes an application for development with a service key and a mock mailbox. */
export async function createDemonstration({ applications, keys, accounts, clock }: Rooms): Promise<Demonstration> {
  const { id, environment } = await applications.create('Demonstration', 'development');
  const { token } = await keys.create(id, environment, {
    name: 'demonstration',
    role: 'service',
    scopeId: null,
    expiresAt: new Date(clock() + YEAR_MS),
  });
  const credentials: MockCredentials = { drafts: true };
  const account = await accounts.insert(id, {
    provider: 'mock',
    providerUserId: ADDRESS,
    name: ADDRESS,
    scopeId: null,
    secret: { credentials },
  });
  if (account === undefined) throw new Error('A new application already owns an account.');
  return { token, accountId: account.id };
}
