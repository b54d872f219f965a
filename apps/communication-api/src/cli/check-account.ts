import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';
import { ServiceError } from '../domain/service-error.ts';
import { UserError } from '../domain/user-error.ts';
import { compose, type Draft } from '../mail/compose.ts';
import type { MailAccount, MailProvider, Parent, SentIds } from '../providers/provider.ts';
import type { Rooms } from '../rooms.ts';
import type { Terminal } from './command-line.ts';

/** How long one call of the provider may take. */
const TIMEOUT_MS = 60_000;
/** How often, and how long apart, a sent email is looked for. */
const LOOK_TIMES = 15;
const LOOK_EVERY_MS = 2_000;

/** The emails of a check, and its observations. */
class Check {
  /** In the subject of each email, so that the emails of two checks cannot be confused. */
  readonly id = randomBytes(4).toString('hex');
  failures = 0;
  sent = 0;

  constructor(
    readonly mailAccount: MailAccount,
    private readonly to: string,
    private readonly clock: Clock,
    private readonly terminal: Terminal,
  ) {}

  expect(isSo: boolean, text: string): void {
    if (!isSo) this.failures++;
    this.#print(isSo ? 'ok' : 'FAIL', text);
  }

  note(text: string): void {
    this.#print('note', text);
  }

  #print(what: string, text: string): void {
    this.terminal.out(`${what.padEnd(5)} ${text}\n`);
  }

  get signal(): AbortSignal {
    return AbortSignal.timeout(TIMEOUT_MS);
  }

  email(what: string, given: Partial<Draft> = {}) {
    const messageId = `<${randomBytes(16).toString('hex')}@${this.mailAccount.address.split('@')[1] ?? 'localhost'}>`;
    return compose({
      messageId,
      date: new Date(this.clock()),
      from: { address: this.mailAccount.address },
      to: [{ address: this.to }],
      cc: [],
      bcc: [],
      subject: `Check ${this.id}: ${what}`,
      body: 'This email belongs to a check of communication-api.',
      customHeaders: [{ name: 'X-Check', value: this.id }],
      attachments: [],
      ...given,
    });
  }
}

/**
 * Sends a few emails with a real account and reports whether its provider behaves as the service expects.
 * @param to where the emails go. Default: the account's own address
 * @returns exit code 0, or 1 if the provider behaves differently
 * @throws UserError if there is nothing to check
 */
export async function checkAccount(
  rooms: Pick<Rooms, 'accounts' | 'mailAccounts' | 'providers' | 'clock'>,
  id: string,
  to: string | undefined,
  terminal: Terminal,
): Promise<number> {
  const account = await rooms.accounts.findForOperator(id);
  if (account === undefined) throw new UserError(`${id}: there is no such account.`, 2);
  const mail = rooms.providers.find(account.provider)?.mail;
  if (mail === undefined) throw new UserError(`${id}: the provider ${account.provider} sends no email here.`, 2);
  const mailbox = to ?? account.name;
  const check = new Check(rooms.mailAccounts.of(account), mailbox, rooms.clock, terminal);
  try {
    await checkMail(mail, check, account.provider);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    check.expect(false, `${error.status} ${error.type}: ${error.message}`);
  }
  const emails = `${check.sent} email${check.sent === 1 ? '' : 's'}`;
  terminal.out(`\n${mailbox} must have got exactly ${emails} with "Check ${check.id}" in the subject. Count them.\n`);
  return check.failures === 0 ? 0 : 1;
}

async function checkMail(mail: MailProvider, check: Check, provider: string): Promise<void> {
  const { mailAccount } = check;
  const isFenced = mail.isFenced(mailAccount);
  check.note(`${mailAccount.address}, provider ${provider}, sends ${isFenced ? 'drafts' : 'without drafts'}`);
  const ids = isFenced ? await checkDrafts(mail, check) : await checkSend(mail, check);
  if (ids !== undefined) await checkReply(mail, check, ids, isFenced);
}

async function checkDrafts(mail: MailProvider, check: Check): Promise<SentIds | undefined> {
  const { mailAccount: account } = check;
  const unwanted = check.email('must not arrive');
  const discarded = await mail.draft(unwanted, account, check.signal);
  const wasThere = await mail.discard(discarded, account, check.signal);
  const isThere = await mail.discard(discarded, account, check.signal);
  check.expect(wasThere && !isThere, 'a draft is deleted once');
  const isGone = (await mail.sendDraft(discarded, account, check.signal)) === undefined;
  check.expect(isGone, 'a draft that was deleted is not sent');
  const nothing = await mail.find({ messageId: unwanted.messageId, draft: discarded }, account, check.signal);
  check.expect(nothing === undefined, 'an email that was not sent is not found');

  const first = check.email('first');
  const draft = await mail.draft(first, account, check.signal);
  const results = await Promise.allSettled([1, 2].map(() => mail.sendDraft(draft, account, check.signal)));
  const sent = results.flatMap((result) => (result.status === 'fulfilled' && result.value ? [result.value] : []));
  check.expect(
    sent.length === 1,
    `of two attempts to send a draft at the same time, one sends it (${sent.length} did)`,
  );
  check.sent = 1;
  const again = await mail.sendDraft(draft, account, check.signal);
  check.expect(again === undefined, 'a draft that was sent is not sent again');
  const [ids] = sent;
  const found = await checkFind(mail, check, { messageId: first.messageId, draft }, ids);
  if (ids !== undefined) noteMessageId(check, first.messageId, ids.messageId);
  return ids && withId(ids, found);
}

async function checkSend(mail: MailProvider, check: Check): Promise<SentIds> {
  const first = check.email('first');
  const ids = await mail.send(first, check.mailAccount, check.signal);
  check.sent = 1;
  check.expect(ids.rejected.length === 0, 'an email is sent');
  return withId(ids, await checkFind(mail, check, { messageId: first.messageId, draft: null }, ids));
}

/** A provider may show a sent email only after moments. Then the send itself returns no id. */
const withId = (ids: SentIds, found: SentIds | undefined): SentIds => (ids.providerId === null ? (found ?? ids) : ids);

/** A crash leaves only the trace of an email. It must lead to the email. */
async function checkFind(
  mail: MailProvider,
  check: Check,
  trace: Parameters<MailProvider['find']>[0],
  ids: SentIds | undefined,
): Promise<SentIds | undefined> {
  const start = performance.now();
  for (let times = 1; ; times++) {
    const found = await mail.find(trace, check.mailAccount, check.signal);
    const seconds = ((performance.now() - start) / 1_000).toFixed(1);
    if (found !== undefined) {
      const isSame = ids === undefined || ids.providerId === null || found.providerId === ids.providerId;
      check.expect(isSame, `an email that was sent is found, after ${seconds} s`);
      return found;
    }
    if (trace.draft === null || times === LOOK_TIMES) {
      const text = `an email that was sent is not found within ${seconds} s`;
      // A provider without drafts may offer no way to look.
      if (trace.draft === null) check.note(text);
      else check.expect(false, text);
      return undefined;
    }
    await pause(LOOK_EVERY_MS);
  }
}

function noteMessageId(check: Check, ours: string, theirs: string | undefined): void {
  if (theirs === undefined || theirs === ours) check.note('the provider keeps the Message-ID of the email');
  else check.note('the provider replaces the Message-ID of the email; replies name the new one');
}

async function checkReply(mail: MailProvider, check: Check, ids: SentIds, isFenced: boolean): Promise<void> {
  const { mailAccount: account } = check;
  const parent: Parent | undefined =
    ids.providerId === null ? undefined : await mail.parent(ids.providerId, account, check.signal);
  if (parent === undefined)
    return check.note('an email cannot be read by its provider_id: reply_to takes a tracking_id only');
  const email = check.email('reply', { parent });
  const reply = isFenced
    ? await mail.sendDraft(await mail.draft(email, account, check.signal), account, check.signal)
    : await mail.send(email, account, check.signal);
  check.sent++;
  const isThere = reply !== undefined && (ids.thread === null || reply.thread === ids.thread);
  check.expect(isThere, 'a reply is in the conversation of its parent');
}
