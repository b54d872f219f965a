import type { FastifyReply } from 'fastify';
import type { Account } from '../accounts/accounts.ts';
import { EMAIL_STATES } from '../domain/email-state.ts';
import { isId } from '../domain/ids.ts';
import { mayInApplication } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';
import { resolveEmail } from '../journal/resolve.ts';
import type { Send } from '../journal/send-records.ts';
import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import { type HereInApplication, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { choiceIn, listed, pageAsked, textIn } from './list-page.ts';
import { EmailPage } from './pages/email-page.tsx';
import { EmailsPage, MAX_COUNTED } from './pages/emails-page.tsx';
import { FOUND_OUTCOMES, FOUND_WORDS } from './pages/resolve-form.tsx';
import { applicationPath, emailPath } from './paths.ts';
import type { Router } from './router.ts';

/** Accounts that a text may name. */
const MATCHING: Page = { limit: 100, offset: 0, before: undefined };

/** Emails of an application, from the journal. */
export function emailRoutes(router: Router, rooms: Rooms): void {
  const { sends, accounts, tracking, people } = rooms;
  /** The accounts whose emails are asked for, and whether more accounts match. Undefined: all accounts. */
  async function accountsAsked(applicationId: string, text: string) {
    if (text === '') return undefined;
    // The journal also contains emails of removed accounts.
    if (isId(text, 'acc')) return { ids: [text], hasMore: false };
    const found = await accounts.list(applicationId, { search: text }, MATCHING);
    return { ids: found.map(({ id }) => id), hasMore: found.length > MATCHING.limit };
  }

  /** The names of accounts by their ids. Removed accounts are missing. */
  async function namesOf(applicationId: string, rows: readonly Send[]): Promise<ReadonlyMap<string, string>> {
    const ids = [...new Set(rows.map(({ account_id }) => account_id))];
    return new Map((await accounts.findAll(applicationId, ids)).map(({ id, name }) => [id, name]));
  }

  router.applicationPage(applicationPath(':application', 'emails'), 'read emails', async ({ here, application }) => {
    const { query } = here.request;
    const state = choiceIn(query, 'state', EMAIL_STATES);
    const account = textIn(query, 'account');
    const asked = await accountsAsked(application.id, account);
    const page = pageAsked(query, 'before', 'eml');
    const emails = listed(await sends.records.list(application.id, { state, accountIds: asked?.ids }, page), 'before', {
      state,
      account,
    });
    return sendPage(
      here.reply,
      <EmailsPage
        here={here}
        application={application}
        emails={emails}
        names={await namesOf(application.id, emails.rows)}
        filter={{ state, account }}
        hasMoreAccounts={asked?.hasMore ?? false}
        unknown={await sends.records.countUnknown(application.id, MAX_COUNTED + 1)}
      />,
    );
  });

  async function emailOf({ here, application }: HereInApplication): Promise<Send> {
    const { email: id } = here.request.params as { readonly email: string };
    return (await sends.records.byId(application.id, id)) ?? unknown();
  }

  async function show(at: HereInApplication, email: Send, inputs: Inputs, status = 422): Promise<FastifyReply> {
    const { here, application } = at;
    const account: Account | undefined = await accounts.find(application.id, email.account_id);
    const page = (
      <EmailPage
        here={here}
        application={application}
        email={email}
        account={account}
        hits={email.tracks_opens || email.tracks_links ? await tracking.countsOf(application.id, email.id) : undefined}
        canResolve={mayInApplication(here.member.role, 'resolve emails', application.environment)}
        inputs={inputs}
        isResolved={'resolved' in (here.request.query as object)}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? status : 200);
  }

  router.applicationPage(emailPath(':application', ':email'), 'read emails', async (at) =>
    show(at, await emailOf(at), new Inputs(at.here.entered)),
  );

  router.applicationForm(emailPath(':application', ':email', 'resolve'), 'resolve emails', async (at) => {
    const { here, application } = at;
    const email = await emailOf(at);
    const inputs = new Inputs(here.entered);
    const outcome = inputs.choice('outcome', FOUND_OUTCOMES);
    if (outcome === undefined) return show(at, email, inputs);
    // The entry of the audit log is written with the outcome.
    await people.audited(here.actor, async () => [undefined, undefined]);
    const audit = people.audit.entryOf(here.actor, {
      ...{ action: 'resolved an email', subject: `${email.id}, ${FOUND_WORDS[outcome]}` },
      ...{ subjectId: email.id, applicationId: application.id },
    });
    if (await resolveEmail(rooms, email, outcome, audit))
      return seeOther(here.reply, `${emailPath(application.id, email.id)}?resolved`);
    const now = await emailOf(at);
    inputs.fault(
      undefined,
      now.state === 'unknown'
        ? 'The service is asking the provider about this email at this moment. Nothing was changed. Wait a minute, then open the page again.'
        : 'Another person, or the service itself, found out the outcome of this email since you opened the page. It is shown as it is now. Your entry changed nothing.',
    );
    return show(at, now, inputs, 409);
  });
}
