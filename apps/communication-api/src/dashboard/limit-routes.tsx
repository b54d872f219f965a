import type { FastifyReply } from 'fastify';
import { isHeadgateError, parseLimit } from 'headgate';
import type { Account } from '../accounts/accounts.ts';
import type { EffectiveLimit } from '../domain/effective-limits.ts';
import { previewOf, type UsedWindow } from '../domain/limit-preview.ts';
import { mayInApplication } from '../domain/member-roles.ts';
import { METHODS } from '../domain/methods.ts';
import { limitProvider } from '../limits/book.ts';
import { withCounters } from '../limits/counters.ts';
import { canonicalWindows } from '../limits/windows.ts';
import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import { type HereInApplication, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { AccountPage, type LimitView } from './pages/account-page.tsx';
import { AccountsPage } from './pages/accounts-page.tsx';
import { LimitPreviewPage } from './pages/limit-preview-page.tsx';
import { accountPath, applicationPath } from './paths.ts';
import type { Router } from './router.ts';

/** The limit that every route has, in a form. Other values are routes. */
const ALL_METHODS = 'all';
const ROUTE_VALUES = [ALL_METHODS, ...METHODS] as const;
const MAX_WINDOWS = 2;
/** How often a page that is followed is made again. */
const LIVE_SECONDS = 5;
const DONE = ['adjusted', 'emptied'] as const;

const routeOf = (value: string): string | null => (value === ALL_METHODS ? null : value);
const formValueOf = (route: string | null): string => route ?? ALL_METHODS;

/** A form that has faults. */
interface FaultyLimit {
  readonly route: string | null;
  readonly inputs: Inputs;
}

/** Accounts of an application, with their live windows and limits. */
export function limitRoutes(router: Router, { accounts, book, overrides, limiter, people, clock }: Rooms): void {
  async function accountOf({ here, application }: HereInApplication): Promise<Account> {
    const { account: id } = here.request.params as { readonly account: string };
    return (await accounts.find(application.id, id)) ?? unknown();
  }

  /** What an account has used of a limit now. */
  async function usedOf(
    { id, application_id, provider: name }: Account,
    route: string | null,
  ): Promise<readonly UsedWindow[]> {
    const provider = limitProvider(application_id, name);
    // Each route counts for itself, also against the limit that every route has.
    const windows = await withCounters(() => limiter.peek({ account: id, provider, route: route ?? METHODS[0] }));
    return windows
      .filter(({ limit }) => (limit === 'all-methods') === (route === null))
      .map(({ max, remaining, durationMs, resetMs }) => ({ used: max - remaining, durationMs, resetMs }));
  }

  async function viewOf(account: Account, { route, windows, source }: EffectiveLimit): Promise<LimitView> {
    const used = await usedOf(account, route);
    return {
      value: formValueOf(route),
      label: route ?? 'All methods',
      text: windows.join(', '),
      source,
      windows: previewOf(windows.length === 0 ? [] : parseLimit(windows), used),
      seen: seenOf(await overrides.find(account.application_id, { accountId: account.id }, route)),
    };
  }

  async function show(
    at: HereInApplication,
    account: Account,
    faulty?: FaultyLimit,
    status = 422,
  ): Promise<FastifyReply> {
    const { here, application } = at;
    await book.reload(application.id);
    const limits = book.list(application.id, account.provider, account.id);
    const { done, live } = here.request.query as { readonly done?: unknown; readonly live?: unknown };
    if (live !== undefined) here.reply.header('refresh', LIVE_SECONDS);
    const page = (
      <AccountPage
        here={here}
        application={application}
        account={account}
        canManage={mayInApplication(here.member.role, 'manage limits', application.environment)}
        limits={await Promise.all(limits.map((limit) => viewOf(account, limit)))}
        faulty={faulty && { value: formValueOf(faulty.route), inputs: faulty.inputs }}
        isLive={live !== undefined}
        done={DONE.find((each) => each === done)}
        nowMs={clock()}
      />
    );
    return sendPage(here.reply, page, faulty === undefined ? 200 : status);
  }

  /** The windows that were entered; null: the limit is reset. Undefined: they are faulty. */
  function windowsIn(inputs: Inputs): readonly string[] | null | undefined {
    if (inputs.raw('reset') !== '') return null;
    const texts = inputs
      .raw('windows')
      .split(/[\s,]+/)
      .filter((text) => text !== '');
    if (texts.length === 0 || texts.length > MAX_WINDOWS)
      inputs.fault('windows', 'Enter one or two windows, such as 120/1m, 20000/1d.');
    else {
      try {
        return canonicalWindows(texts, 'windows');
      } catch (error) {
        if (!isHeadgateError(error, 'invalid_limit')) throw error;
        inputs.fault('windows', error.message);
      }
    }
    return undefined;
  }

  function readForm(inputs: Inputs) {
    const value = inputs.choice('route', ROUTE_VALUES);
    if (value === undefined) return unknown();
    return { route: routeOf(value), windows: windowsIn(inputs) };
  }

  router.applicationPage(
    applicationPath(':application', 'accounts'),
    'read accounts',
    async ({ here, application }) => {
      const rows = await accounts.list(application.id, {}, pageAsked(here.request.query, 'before', 'acc'));
      return sendPage(
        here.reply,
        <AccountsPage here={here} application={application} accounts={listed(rows, 'before')} />,
      );
    },
  );

  router.applicationPage(accountPath(':application', ':account'), 'read limits', async (at) =>
    show(at, await accountOf(at)),
  );

  // It changes nothing, but shows what the change would do.
  router.applicationForm(accountPath(':application', ':account', 'preview'), 'manage limits', async (at) => {
    const { here, application } = at;
    const account = await accountOf(at);
    const inputs = new Inputs(here.entered);
    const { route, windows } = readForm(inputs);
    if (windows === undefined) return show(at, account, { route, inputs });
    const next =
      windows ?? book.list(application.id, account.provider).find((each) => each.route === route)?.windows ?? [];
    const page = (
      <LimitPreviewPage
        here={here}
        application={application}
        account={account}
        label={route ?? 'All methods'}
        value={formValueOf(route)}
        isReset={windows === null}
        text={next.join(', ')}
        seen={inputs.raw('seen')}
        windows={previewOf(next.length === 0 ? [] : parseLimit(next), await usedOf(account, route))}
      />
    );
    return sendPage(here.reply, page);
  });

  router.applicationForm(accountPath(':application', ':account', 'limits'), 'manage limits', async (at) => {
    const { here, application } = at;
    const account = await accountOf(at);
    const inputs = new Inputs(here.entered);
    const { route, windows } = readForm(inputs);
    if (windows === undefined) return show(at, account, { route, inputs });
    const subject = `${account.name}, ${route ?? 'All methods'}${windows === null ? '' : `: ${windows.join(', ')}`}`;
    const action = windows === null ? ('reset a limit' as const) : ('adjusted a limit' as const);
    const isDone = await people.audited(here.actor, async (transaction) => {
      const done = await overrides.replace(
        application.id,
        { accountId: account.id },
        route,
        { windows, changedBy: here.member.id, isAsSeen: (own) => seenOf(own) === inputs.raw('seen') },
        transaction,
      );
      const deed = { action, subject, subjectId: account.id, applicationId: application.id };
      return [done, done ? deed : undefined];
    });
    if (!isDone) {
      inputs.fault(
        undefined,
        'Another person has changed this limit since you opened the page. It is shown as it is now. Nothing of yours was changed.',
      );
      return show(at, account, { route, inputs }, 409);
    }
    await book.reload(application.id);
    return seeOther(here.reply, `${accountPath(application.id, account.id)}?done=adjusted`);
  });

  router.applicationForm(accountPath(':application', ':account', 'counters'), 'manage limits', async (at) => {
    const { here, application } = at;
    const account = await accountOf(at);
    const deed = { action: 'reset counters' as const, subject: account.name, subjectId: account.id };
    // In the transaction, so that nothing is emptied if the database is away, or if the person has lost the role.
    await people.audited(here.actor, async () => {
      await withCounters(() => limiter.reset({ account: account.id }));
      return [undefined, { ...deed, applicationId: application.id }];
    });
    return seeOther(here.reply, `${accountPath(application.id, account.id)}?done=emptied`);
  });
}

/** What a person has seen of the account's own limit. */
const seenOf = (own: readonly string[] | undefined): string => (own === undefined ? 'none' : own.join(','));
