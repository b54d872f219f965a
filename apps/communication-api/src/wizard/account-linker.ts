import type { Account, AccountSecret } from '../accounts/accounts.ts';
import type { AutoProxy, CustomProxy } from '../domain/proxy.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { WizardData } from '../links/wizard-sessions.ts';
import type { IdentifiedAccount } from '../providers/link-flow.ts';
import type { LinkableProvider } from '../providers/registry.ts';
import type { Rooms } from '../rooms.ts';
import type { SessionVisit, Visit } from './visit.ts';

/** The result for an account that a provider identified. */
export type Linked =
  | { readonly kind: 'linked'; readonly accountId: string }
  /** The application linked this account before. */
  | { readonly kind: 'exists'; readonly accountId: string }
  /** It is not the account to reconnect, or the link is not open any more. The session's page says so. */
  | { readonly kind: 'stay' };

/** Links the account that a provider identified. */
export class AccountLinker {
  constructor(private readonly rooms: Rooms) {}

  async link(
    visit: SessionVisit,
    provider: LinkableProvider,
    account: IdentifiedAccount,
    data: WizardData,
  ): Promise<Linked> {
    const { links, wizardSessions, accounts } = this.rooms;
    const { link, session } = visit;
    const expected = await this.accountToReconnect(visit);
    if (expected !== undefined && expected.provider_user_id !== account.providerUserId) {
      const { language, provider: name } = data;
      const otherAccount = account.name;
      await wizardSessions.save(session.row.id, 'wrong-account', { language, provider: name, otherAccount });
      return { kind: 'stay' };
    }
    const before = expected === undefined ? undefined : accounts.secretOf(expected);
    const outcome = await links.complete(link.application_id, {
      link,
      sessionId: session.row.id,
      account: {
        provider: provider.name,
        providerUserId: account.providerUserId,
        name: account.name,
        initialSyncMs: account.initialSyncMs,
        secret: { credentials: account.credentials, ...proxiesOf(visit, provider, data, before) },
      },
    });
    if (outcome.kind === 'removed') throw gone();
    return outcome.kind === 'closed' ? this.closedMeanwhile(visit) : outcome;
  }

  /** The same form may have been submitted twice: then the first submission linked the account. */
  async closedMeanwhile({ token, link, session }: SessionVisit): Promise<Exclude<Linked, { kind: 'exists' }>> {
    const [now, row] = await Promise.all([
      this.rooms.links.resolve(token),
      this.rooms.wizardSessions.resolve(link.id, session.cookie),
    ]);
    const accountId = now?.used_account_id ?? null;
    if (row?.step === 'linked' && accountId !== null) return { kind: 'linked', accountId };
    // The page of the link says why.
    return { kind: 'stay' };
  }

  /** @throws ServiceError 404 if the account was removed */
  async accountToReconnect({ link }: Visit): Promise<Account | undefined> {
    if (link.account_id === null) return undefined;
    const account = await this.rooms.accounts.find(link.application_id, link.account_id);
    if (account === undefined) throw gone();
    return account;
  }
}

const gone = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'The account to reconnect was removed.');

/** The user's own proxy comes first, then the proxy of the link, then the present proxy of a reconnected account. */
export function proxiesOf(
  { config }: Visit,
  { name }: LinkableProvider,
  data: WizardData,
  before: AccountSecret | undefined,
): { readonly proxy?: CustomProxy; readonly autoProxy?: AutoProxy } {
  const settings = config[name];
  const proxy = data.proxy ?? settings?.custom_proxy;
  if (proxy !== undefined) return { proxy };
  const autoProxy = data.country === undefined ? settings?.auto_proxy_config : { country: data.country };
  if (autoProxy !== undefined) return { autoProxy };
  return {
    ...(before?.proxy === undefined ? {} : { proxy: before.proxy }),
    ...(before?.autoProxy === undefined ? {} : { autoProxy: before.autoProxy }),
  };
}
