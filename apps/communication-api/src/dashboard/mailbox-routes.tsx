import type { FastifyReply } from 'fastify';
import type { Account } from '../accounts/accounts.ts';
import type { Page } from '../domain/page.ts';
import { readHead, readMessage } from '../mail/read-message.ts';
import { type MockMessage, numberIn, providerIdOf } from '../providers/mock/mailbox.ts';
import type { Rooms } from '../rooms.ts';
import { sendPage } from './answers.tsx';
import { type HereInApplication, unknown } from './here.ts';
import { listed } from './list-page.ts';
import { MailboxPage } from './pages/mailbox-page.tsx';
import { FRAME_RIGHTS, MockEmailPage } from './pages/mock-email-page.tsx';
import { accountPath } from './paths.ts';
import type { Router } from './router.ts';

/** Emails per page. */
const LIMIT = 50;

/**
 * The header fields of an email's HTML. It is the text of others: `sandbox` gives it no script, no form, no cookie and
 * no way to change the page around it. It can load nothing, so an open is not counted. Its links open new tabs.
 */
const HTML_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': [
    `default-src 'none'`,
    `style-src 'unsafe-inline'`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'self'`,
    `sandbox ${FRAME_RIGHTS}`,
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  vary: 'cookie',
};

/** The mailboxes of mock accounts, which only applications for development have. */
export function mailboxRoutes(router: Router, { accounts, mockMailbox, sends }: Rooms): void {
  async function accountOf({ here, application }: HereInApplication): Promise<Account> {
    const { account: id } = here.request.params as { readonly account: string };
    const account = await accounts.find(application.id, id);
    return account?.provider === 'mock' ? account : unknown();
  }

  async function messageOf({ here }: HereInApplication, account: Account): Promise<MockMessage> {
    const { message } = here.request.params as { readonly message: string };
    const number = numberIn(message);
    return (number === undefined ? undefined : await mockMailbox.byId(account.id, number)) ?? unknown();
  }

  /** The page of the list that the query asks for. */
  function pageIn({ here }: HereInApplication): Page {
    const { before } = here.request.query as { readonly before?: unknown };
    return {
      limit: LIMIT,
      offset: 0,
      before: typeof before === 'string' && numberIn(before) !== undefined ? before : undefined,
    };
  }

  router.applicationPage(accountPath(':application', ':account', 'mailbox'), 'read emails', async (at) => {
    const { here, application } = at;
    const account = await accountOf(at);
    const emails = listed(await mockMailbox.list(account.id, pageIn(at)), 'before');
    const heads = await Promise.all(emails.rows.map(({ start }) => readHead(start)));
    const page = <MailboxPage here={here} application={application} account={account} emails={emails} heads={heads} />;
    return sendPage(here.reply, page);
  });

  router.applicationPage(accountPath(':application', ':account', 'mailbox/:message'), 'read emails', async (at) => {
    const { here, application } = at;
    const account = await accountOf(at);
    const message = await messageOf(at, account);
    const send = await sends.records.byProviderId(application.id, account.id, providerIdOf(message));
    const page = (
      <MockEmailPage
        here={here}
        application={application}
        account={account}
        message={message}
        read={await readMessage(message.raw, 'linked')}
        trackingId={send?.id}
      />
    );
    return sendPage(here.reply, page, 200, { frames: true });
  });

  router.applicationPage(
    accountPath(':application', ':account', 'mailbox/:message/html'),
    'read emails',
    async (at): Promise<FastifyReply> => {
      const { raw } = await messageOf(at, await accountOf(at));
      const { html } = await readMessage(raw, 'embedded');
      return at.here.reply
        .headers(HTML_HEADERS)
        .type('text/html; charset=utf-8')
        .send(html === null ? unknown() : `<!doctype html><base target="_blank">${html}`);
    },
  );
}
