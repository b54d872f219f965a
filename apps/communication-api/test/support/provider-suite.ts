import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { compose } from '../../src/mail/compose.ts';
import type { ComposedMail } from '../../src/mail/mail.ts';
import { dryRun } from '../../src/providers/dry-run.ts';
import type { IdentifiedAccount, LinkContext, LinkStep, StepValues } from '../../src/providers/link-flow.ts';
import type { MailAccount, MailProvider, Provider } from '../../src/providers/provider.ts';
import { stepFaultsOf } from '../../src/providers/provider-faults.ts';
import { Egress } from '../../src/security/egress.ts';

/** A provider, and a user who links an account of it, and sends emails with it. */
export interface ProviderCase {
  readonly provider: Provider;
  /** The user's entries on a page. On a page that leads away: the value `query` with which the user comes back. */
  act(step: LinkStep): Promise<StepValues> | StepValues;
  /** How many copies of an email its recipient got. Needed if the provider sends emails. */
  readonly delivered?: (messageId: string) => Promise<number>;
  /** The address of a recipient. Default: `bob@example.com`. */
  readonly recipient?: string;
  /** The id of the account that sends. Default: an id that is in no database. */
  readonly accountId?: string;
}

/** How a provider sends emails: drafts can be sent once, others are sent directly. */
export type Sending = 'drafts' | 'directly' | 'not';

const MOST_PAGES = 10;
/** The address to which a provider's own site sends the user back. */
const SUITE_CALLBACK = 'http://127.0.0.1/auth/callback';

/** The tests that every provider passes, built in or from a plug-in. */
export function providerSuite(name: string, sending: Sending, open: () => Promise<ProviderCase>): void {
  describe(name, () => {
    let given: ProviderCase;
    let linked: IdentifiedAccount;
    beforeAll(async () => {
      given = await open();
      linked = await link(given);
    });
    const sender = () => senderOf(given, linked);

    test('nothing is wrong with it before an account is linked', async () => {
      expect(await dryRun(given.provider, contextOf())).toEqual([]);
    });

    test('it leads to an account with an id, a name and credentials that can be stored', () => {
      expect(linked.providerUserId).toEqual(expect.stringMatching(/\S/));
      expect(linked.name).toEqual(expect.stringMatching(/\S/));
      expect(JSON.parse(JSON.stringify(linked.credentials))).toEqual(linked.credentials);
    });

    test('the same user gets the same id again, also when the account is reconnected', async () => {
      const { providerUserId, name: account, credentials } = linked;
      const again = await link(given, { reconnect: { providerUserId, name: account, credentials } });
      expect(again.providerUserId).toBe(providerUserId);
    });

    test(`it sends emails: ${sending}`, () => {
      if (sending === 'not') expect(given.provider.mail).toBeUndefined();
      else expect(sender().mail.isFenced(sender().account)).toBe(sending === 'drafts');
    });
    if (sending === 'not') return;

    test('it sends an email once, and finds it again', async () => {
      const { mail, account } = sender();
      const email = emailFrom(linked.name, given.recipient);
      const fenced = mail.isFenced(account);
      const draft = fenced ? await mail.draft(email, account, signal()) : null;
      expect(await delivered(given, email.messageId)).toBe(0);
      const sent = await (draft === null
        ? mail.send(email, account, signal())
        : mail.sendDraft(draft, account, signal()));
      expect(sent).toMatchObject({ rejected: [] });
      const messageId = sent?.messageId ?? email.messageId;
      await expect.poll(() => delivered(given, messageId), { timeout: 10_000 }).toBe(1);
      await fileTwice(mail, email, account);
      const { providerId } = sent ?? {};
      await expect
        .poll(() => mail.find({ messageId: email.messageId, draft }, account, signal()), { timeout: 10_000 })
        .toMatchObject(providerId == null ? {} : { providerId });
      if (providerId == null) return;
      expect(await mail.parent(providerId, account, signal())).toMatchObject({ messageId });
    });

    test('it finds no email that was never sent', async () => {
      const { mail, account } = sender();
      const trace = { messageId: emailFrom(linked.name).messageId, draft: null };
      expect(await mail.find(trace, account, signal())).toBeUndefined();
    });

    test('it reads an email to its end, and stops if it may not go on', async () => {
      const { mail, account } = sender();
      const email = emailFrom(linked.name, given.recipient);
      expect(await text(email.open())).toContain('The end.');
      const aborted = AbortSignal.abort(new Error('too late'));
      if (mail.isFenced(account)) await mail.draft(email, account, aborted).catch(() => undefined);
      else await mail.send(email, account, aborted).catch(() => undefined);
    });
    if (sending === 'directly') return;

    test('a draft is sent once, also by two attempts at the same time, and is gone afterwards', async () => {
      const { mail, account } = sender();
      const email = emailFrom(linked.name, given.recipient);
      const draft = await mail.draft(email, account, signal());
      const sent = await Promise.all([1, 2].map(() => mail.sendDraft(draft, account, signal())));
      expect(sent.filter((each) => each !== undefined)).toHaveLength(1);
      expect(await mail.sendDraft(draft, account, signal())).toBeUndefined();
      const messageId = sent.find((each) => each !== undefined)?.messageId ?? email.messageId;
      await expect.poll(() => delivered(given, messageId), { timeout: 10_000 }).toBe(1);
    });

    test('a draft that was discarded cannot be sent, and only the call that deleted it says so', async () => {
      const { mail, account } = sender();
      const email = emailFrom(linked.name, given.recipient);
      const draft = await mail.draft(email, account, signal());
      expect(await mail.discard(draft, account, signal())).toBe(true);
      expect(await mail.discard(draft, account, signal())).toBe(false);
      expect(await mail.sendDraft(draft, account, signal())).toBeUndefined();
      expect(await delivered(given, email.messageId)).toBe(0);
    });

    test('a draft that was sent cannot be discarded', async () => {
      const { mail, account } = sender();
      const email = emailFrom(linked.name, given.recipient);
      const draft = await mail.draft(email, account, signal());
      const sent = await mail.sendDraft(draft, account, signal());
      expect(await mail.discard(draft, account, signal())).toBe(false);
      const messageId = sent?.messageId ?? email.messageId;
      await expect.poll(() => delivered(given, messageId), { timeout: 10_000 }).toBe(1);
    });
  });
}

/** Leads through the pages, as the wizard does: a state is stored as JSON between two pages. */
async function link({ provider, act }: ProviderCase, more: Partial<LinkContext> = {}): Promise<IdentifiedAccount> {
  const flow = provider.link ?? expect.fail('It offers no way to an account.');
  const context = contextOf(more);
  let state = stored(await flow.begin(context));
  for (let page = 0; page < MOST_PAGES; page++) {
    const step = flow.stepOf(state, context);
    expect(stepFaultsOf(step)).toEqual([]);
    const answer = await flow.submit(state, await act(step), context);
    if (answer.kind === 'identified') return answer.account;
    if (answer.kind !== 'next') expect.fail(`The page ${step.name} was answered by ${JSON.stringify(answer)}.`);
    state = stored(answer.state);
  }
  return expect.fail('The way to an account does not end.');
}

const stored = (state: unknown): unknown => JSON.parse(JSON.stringify(state));
const signal = (): AbortSignal => AbortSignal.timeout(20_000);

const contextOf = (more: Partial<LinkContext> = {}): LinkContext => ({
  loginHint: undefined,
  reconnect: undefined,
  offered: [],
  proxy: undefined,
  net: new Egress({ policy: 'off' }).through(undefined),
  callbackUrl: SUITE_CALLBACK,
  callbackState: randomBytes(32).toString('base64url'),
  settings: {},
  now: Date.now(),
  signal: signal(),
  ...more,
});

function senderOf(
  { provider, accountId = 'acc_suite' }: ProviderCase,
  { name, credentials }: IdentifiedAccount,
): { readonly mail: MailProvider; readonly account: MailAccount } {
  let current = stored(credentials);
  const account: MailAccount = {
    id: accountId,
    address: name,
    credentials: current,
    net: new Egress({ policy: 'off' }).through(undefined),
    renew: async (_, refresh) => {
      current = await refresh(current);
      return current;
    },
  };
  return { mail: provider.mail ?? expect.fail('It sends no emails.'), account };
}

/** The steps of the service if the provider keeps no copy of sent emails. */
async function fileTwice(mail: MailProvider, email: ComposedMail, account: MailAccount): Promise<void> {
  const message = await buffer(email.open({ keepBcc: true }));
  const measure = async () => ({ size: message.length, open: () => Readable.from(message) });
  const copy = { messageId: email.messageId, sentAt: new Date(), measure };
  if (mail.fileCopy === undefined) return;
  expect(await mail.fileCopy(copy, account, signal())).toBe('filed');
  expect(await mail.fileCopy(copy, account, signal())).toBe('found');
}

const delivered = async ({ delivered: count }: ProviderCase, messageId: string): Promise<number> =>
  (await count?.(messageId)) ?? expect.fail('The case does not count delivered emails.');

const emailFrom = (address: string, recipient = 'bob@example.com') =>
  compose({
    messageId: `<${randomBytes(9).toString('hex')}@suite.test>`,
    date: new Date(),
    from: { address },
    to: [{ address: recipient }],
    cc: [],
    bcc: [],
    subject: 'The suite of providers',
    body: '<p>Hello</p><p>The end.</p>',
    customHeaders: [],
    attachments: [],
  });
