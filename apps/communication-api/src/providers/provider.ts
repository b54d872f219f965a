import type { Readable } from 'node:stream';
import type { ErrorStatus, ErrorTypesByStatus } from '../domain/error-types.ts';
import type { Family, ProviderName } from '../domain/providers.ts';
import { type ErrorExtras, ServiceError } from '../domain/service-error.ts';
import type { ComposedMail } from '../mail/mail.ts';
import type { Net } from '../security/net.ts';
import type { LinkFlow } from './link-flow.ts';

/** A provider that the service can link accounts of. */
export interface Provider {
  readonly name: ProviderName;
  /** The users' name for the provider. */
  readonly title: string;
  readonly supports: ReadonlySet<Family>;
  /** How it sends emails, if it does. */
  readonly mail?: MailProvider;
  /** How users link an account, if the wizard can ask them. The state is the flow's own. */
  readonly link?: LinkFlow;
  /** Withdraws the credentials of a removed account at the provider. They are erased here already. */
  revoke?(account: MailAccount, signal: AbortSignal): Promise<void>;
}

/** The account that a provider is used with. */
export interface MailAccount {
  readonly id: string;
  /** Address of the mailbox. */
  readonly address: string;
  /** As the provider made them when the account was linked, or when they were renewed. */
  readonly credentials: unknown;
  /** The only way out: through the account's proxy, if one is set. */
  readonly net: Net;
  /**
   * Replaces expired credentials. Only one caller refreshes at a time, in all processes together. A caller that waits
   * gets the credentials that the other caller stored.
   * @param stale the credentials that do not work any more
   * @param refresh makes new credentials from the stored ones. If it throws, the error is rethrown, and nothing is
   * stored
   */
  renew(stale: unknown, refresh: (stored: unknown) => Promise<unknown>): Promise<unknown>;
}

/** The journal's facts about an email that may have been sent. */
export interface SendTrace {
  readonly messageId: string;
  /** What `draft` returned for the email. Null: the account is not fenced. */
  readonly draft: string | null;
}

/** The provider's ids of a sent email. */
export interface SentIds {
  readonly providerId: string | null;
  readonly immutableId: string | null;
  readonly thread: string | null;
  /** The `Message-ID` that recipients see, with its brackets, if the provider may replace ours. */
  readonly messageId?: string | undefined;
  /** Recipients that the provider refused, while it sent the email to the others. */
  readonly rejected: readonly string[];
}

/** A sent email for the sender's own folder: without tracking, and with the recipients of `bcc`. */
export interface SentCopy {
  readonly messageId: string;
  readonly sentAt: Date;
  /** The message in MIME form. Undefined: it is too large to be filed. */
  measure(): Promise<CopyMessage | undefined>;
}

/** A message of a known size in bytes. Each `open` reads it from its start. */
export interface CopyMessage {
  readonly size: number;
  open(): Readable;
}

/**
 * The result of filing a copy. `found`: the folder already contains it; `no_folder`: the mailbox lacks a sent folder.
 */
export type CopyResult = 'filed' | 'found' | 'no_folder' | 'too_large';

/** An email that is answered by another email. */
export interface Parent {
  /** With its brackets. */
  readonly messageId: string;
  readonly references: readonly string[];
  readonly subject: string | undefined;
  readonly thread: string | undefined;
}

/** Sends emails in the name of an account. Errors are {@link ProviderError}s. */
export interface MailProvider {
  /** Whether emails of the account are sent as drafts: a draft can be sent once, so a second attempt does no harm. */
  isFenced(account: MailAccount): boolean;
  /** Fenced accounts: stores a draft and returns its name. Recipients see no effect. */
  draft(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<string>;
  /**
   * Fenced accounts: deletes a draft that will not be sent.
   * @returns whether this call deleted it, which proves that it was not sent. False if the draft does not exist
   */
  discard(draft: string, account: MailAccount, signal: AbortSignal): Promise<boolean>;
  /** Fenced accounts: sends a draft. Undefined if the draft does not exist, because it was sent or deleted. */
  sendDraft(draft: string, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined>;
  /**
   * Other accounts: sends the email. The end of the message comes only after the journal noted that it may be sent, so
   * nobody may receive the email before this method read the message to its end. It should read as late as it can.
   */
  send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<SentIds>;
  /** Looks for an email that may have been sent. Undefined proves nothing: it may still be on its way. */
  find(trace: SendTrace, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined>;
  /** Finds an email by the provider's id. Undefined if it does not exist. */
  parent(providerId: string, account: MailAccount, signal: AbortSignal): Promise<Parent | undefined>;
  /**
   * Providers that keep no copy of the emails that they send: puts a copy into the folder for sent emails, unless the
   * folder contains it. It may be called again after an attempt whose outcome is not known.
   */
  fileCopy?(copy: SentCopy, account: MailAccount, signal: AbortSignal): Promise<CopyResult>;
}

/**
 * Whether an error proves that the email was not sent. `unknown`: the connection ended after the email was handed over.
 */
export type Sent = 'no' | 'unknown';

/** An error of a provider, as the client sees it. It also says whether the email was sent. */
export class ProviderError<Status extends ErrorStatus = ErrorStatus> extends ServiceError {
  override readonly name = 'ProviderError';

  constructor(
    readonly sent: Sent,
    status: Status,
    type: ErrorTypesByStatus[Status],
    detail: string,
    extras?: ErrorExtras,
  ) {
    // The pair was checked by this constructor's own type parameter.
    super(...([status, type, detail, extras] as unknown as ConstructorParameters<typeof ServiceError>));
  }
}
