import type { FastifyReply } from 'fastify';
import type { Account } from '../accounts/accounts.ts';
import { mayInApplication } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';
import type { Rooms } from '../rooms.ts';
import { sendPage } from './answers.tsx';
import type { FaultyForm } from './faulty-form.ts';
import { type HereInApplication, unknown } from './here.ts';
import { ofAccount } from './limit-target.ts';
import { LimitViews } from './limit-views.ts';
import { ACCOUNT_DONE, AccountPage } from './pages/account-page.tsx';

/** How often a live page reloads. */
const LIVE_SECONDS = 5;
/** More than the most domains of an application. */
const ALL_DOMAINS: Page = { limit: 200, offset: 0, before: undefined };

/** Answers with the page of an account, with the forms for its status and its limits. */
export class AccountAnswer {
  readonly #views: LimitViews;

  constructor(private readonly rooms: Rooms) {
    this.#views = new LimitViews(rooms);
  }

  /**
   * The account that an address names.
   * @throws UnknownPageError
   */
  async accountOf({ here, application }: HereInApplication): Promise<Account> {
    const { account: id } = here.request.params as { readonly account: string };
    return (await this.rooms.accounts.find(application.id, id)) ?? unknown();
  }

  async send(
    { here, application }: HereInApplication,
    account: Account,
    faulty?: FaultyForm,
    status = 422,
  ): Promise<FastifyReply> {
    const { scopes, domains, clock } = this.rooms;
    const { done, live } = here.request.query as { readonly done?: unknown; readonly live?: unknown };
    const isLive = live !== undefined && faulty === undefined;
    if (isLive) here.reply.header('refresh', LIVE_SECONDS);
    const may = (action: 'manage accounts' | 'manage limits'): boolean =>
      !isLive && mayInApplication(here.member.role, action, application.environment);
    const hosts = (await domains.list(application.id, ALL_DOMAINS))
      .filter(({ purpose, status }) => purpose === 'auth' && status === 'verified')
      .map(({ host }) => host);
    const page = (
      <AccountPage
        here={here}
        application={application}
        account={account}
        scope={account.scope_id === null ? undefined : await scopes.find(application.id, account.scope_id)}
        canManageAccount={may('manage accounts')}
        canManageLimits={may('manage limits')}
        hosts={hosts}
        limits={await this.#views.of(ofAccount(account))}
        faulty={faulty}
        isLive={isLive}
        done={typeof done === 'string' && Object.hasOwn(ACCOUNT_DONE, done) ? ACCOUNT_DONE[done] : undefined}
        nowMs={clock()}
      />
    );
    return sendPage(here.reply, page, faulty === undefined ? 200 : status);
  }
}
