import { revoke } from '../api/accounts/revoke.ts';
import { checkedLink, reconnectionOf } from '../api/links/new-link.ts';
import { linkRequest } from '../api/links/schema.ts';
import { ACCOUNT_STATUSES } from '../domain/account-status.ts';
import { isStorable } from '../domain/header-text.ts';
import { PROVIDER_NAMES } from '../domain/providers.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Rooms } from '../rooms.ts';
import { AccountAnswer } from './account-answer.tsx';
import { seeOther, sendPage } from './answers.tsx';
import { NEW_ID_FIELD, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { choiceIn, listed, pageAsked, textIn } from './list-page.ts';
import { AccountLinkPage, LIFETIMES, LINK_FORM } from './pages/account-link-page.tsx';
import { AccountsPage } from './pages/accounts-page.tsx';
import { accountPath, applicationPath } from './paths.ts';
import type { Router } from './router.ts';

/** Accounts of an application, and their status. */
export function accountRoutes(router: Router, rooms: Rooms): void {
  const { accounts, scopes, links, people, clock } = rooms;
  const answer = new AccountAnswer(rooms);

  router.applicationPage(
    applicationPath(':application', 'accounts'),
    'read accounts',
    async ({ here, application }) => {
      const { query } = here.request;
      const status = choiceIn(query, 'status', ACCOUNT_STATUSES);
      const provider = choiceIn(query, 'provider', PROVIDER_NAMES);
      const search = textIn(query, 'search');
      const scope = await scopes.find(application.id, textIn(query, 'scope_id'));
      const rows = await accounts.list(
        application.id,
        {
          ...{ status, provider, search: search === '' ? undefined : search },
          scopeIds: scope === undefined ? [] : [scope.id],
        },
        pageAsked(query, 'before', 'acc'),
      );
      const page = (
        <AccountsPage
          here={here}
          application={application}
          accounts={listed(rows, 'before', { status, provider, search, scope_id: scope?.id })}
          filter={{ status, provider, search, scope }}
          isRemoved={'removed' in (query as object)}
        />
      );
      return sendPage(here.reply, page);
    },
  );

  router.applicationPage(accountPath(':application', ':account'), 'read accounts', async (at) =>
    answer.send(at, await answer.accountOf(at)),
  );

  router.applicationForm(accountPath(':application', ':account', 'link'), 'manage accounts', async (at) => {
    const { here, application } = at;
    const account = await answer.accountOf(at);
    const inputs = new Inputs(here.entered);
    const lifetime = inputs.choice('lifetime', LIFETIMES);
    const redirectUri = inputs.raw('redirect_uri').trim();
    const { success } = linkRequest.shape.redirect_uri.safeParse(redirectUri);
    if (!success || redirectUri === '' || !isStorable(redirectUri))
      inputs.fault('redirect_uri', 'Enter an https address of at most 2,000 characters.');
    if (inputs.isFaulty || lifetime === undefined) return answer.send(at, account, { form: LINK_FORM, inputs });
    const checked = await checkLink().catch((error: unknown) => {
      if (!(error instanceof ServiceError) || error.status >= 500) throw error;
      const [, field, message = error.message] = /^(redirect_uri|domain): (.*)$/s.exec(error.message) ?? [];
      inputs.fault(field, message.charAt(0).toUpperCase() + message.slice(1));
    });
    if (checked === undefined) return answer.send(at, account, { form: LINK_FORM, inputs });
    const { link, addressOf } = checked;
    const token = await people.audited(here.actor, async (transaction) => {
      const id = inputs.raw(NEW_ID_FIELD);
      const made = await links.create(application.id, { ...link, id, keyId: null }, transaction);
      const deed = { action: 'made a link to reconnect' as const, subject: account.name, subjectId: account.id };
      return [made.token, { ...deed, applicationId: application.id }];
    });
    const props = { account, link: addressOf(token), expiresOn: link.expiresOn };
    return sendPage(here.reply, <AccountLinkPage here={here} application={application} {...props} />);

    async function checkLink() {
      return checkedLink(rooms, application, await reconnectionOf(rooms, application, account), {
        redirect_uri: redirectUri,
        domain: inputs.raw('domain') || undefined,
        expires_on: new Date(clock() + Number(lifetime) * 3_600_000).toISOString(),
      });
    }
  });

  for (const [deed, paused, action] of [
    ['pause', true, 'paused an account'],
    ['resume', false, 'resumed an account'],
  ] as const)
    router.applicationForm(
      accountPath(':application', ':account', deed),
      'manage accounts',
      async ({ here, application }) => {
        const { account: id } = here.request.params as { readonly account: string };
        const found = await people.audited(here.actor, async (transaction) => {
          const before = await accounts.lock(application.id, id, transaction);
          if (before === undefined || (before.paused_at !== null) === paused) return [before, undefined];
          await accounts.update(application.id, id, { paused }, transaction);
          return [before, { action, subject: before.name, subjectId: id, applicationId: application.id }];
        });
        accounts.forgetRecent();
        if (found === undefined) return unknown();
        return seeOther(here.reply, `${accountPath(application.id, id)}?done=${deed}`);
      },
    );

  router.applicationForm(
    accountPath(':application', ':account', 'remove'),
    'manage accounts',
    async ({ here, application }) => {
      const { account: id } = here.request.params as { readonly account: string };
      const removed = await people.audited(here.actor, async (transaction) => {
        const account = await accounts.remove(application.id, id, transaction);
        if (account === undefined) return [undefined, undefined];
        const subject = `${account.name} (${account.provider})`;
        return [account, { action: 'removed an account', subject, subjectId: id, applicationId: application.id }];
      });
      accounts.forgetRecent();
      if (removed === undefined) return unknown();
      await revoke(rooms, removed);
      return seeOther(here.reply, `${applicationPath(application.id, 'accounts')}?removed`);
    },
  );
}
