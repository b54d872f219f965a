import { Readable } from 'node:stream';
import { Socket } from 'node:net';

/** Every `type` of an error that sending an email can end in, by HTTP status, as the specification lists them. */
declare const SEND_ERROR_TYPES: {
    readonly 401: readonly ["errors/missing_credentials", "errors/multiple_sessions", "errors/invalid_checkpoint_solution", "errors/invalid_proxy_credentials", "errors/checkpoint_error", "errors/invalid_credentials", "errors/expired_credentials", "errors/insufficient_privileges", "errors/disconnected_account", "errors/disconnected_feature", "errors/invalid_credentials_but_valid_account_imap", "errors/expired_link", "errors/wrong_account", "errors/invalid_imap_configuration", "errors/invalid_smtp_configuration"];
    readonly 403: readonly ["errors/account_restricted", "errors/account_mismatch", "errors/insufficient_permissions", "errors/session_mismatch", "errors/feature_not_subscribed", "errors/subscription_required", "errors/unknown_authentication_context", "errors/action_required", "errors/resource_access_restricted"];
    readonly 404: readonly ["errors/resource_not_found", "errors/invalid_resource_identifier"];
    readonly 409: readonly ["errors/operation_canceled", "errors/already_exists", "errors/already_used", "errors/checkpoint_switching_not_available", "errors/conflict"];
    readonly 422: readonly ["errors/invalid_account", "errors/invalid_recipient", "errors/no_connection_with_recipient", "errors/blocked_recipient", "errors/user_unreachable", "errors/unprocessable_entity", "errors/payment_error", "errors/action_already_performed", "errors/invalid_message", "errors/invalid_post", "errors/not_allowed_inmail", "errors/insufficient_credits", "errors/cannot_resend_yet", "errors/cannot_resend_within_24hrs", "errors/limit_exceeded", "errors/connection_limit_reached", "errors/already_invited_recently", "errors/already_connected", "errors/cannot_invite_attendee", "errors/parent_mail_not_found", "errors/parent_mail_invalid_provider_id", "errors/invalid_reply_subject", "errors/invalid_headers", "errors/send_as_denied", "errors/invalid_folder", "errors/invalid_thread", "errors/unauthorized", "errors/sender_rejected", "errors/recipient_rejected", "errors/ip_rejected_by_server", "errors/provider_unreachable", "errors/account_configuration_error", "errors/cant_send_message", "errors/realtime_client_not_initialized", "errors/comments_disabled", "errors/insufficient_job_slot"];
    readonly 500: readonly ["errors/unexpected_error", "errors/provider_error", "errors/authentication_intent_error"];
    readonly 503: readonly ["errors/no_client_session", "errors/no_channel", "errors/no_handler", "errors/network_down", "errors/service_unavailable"];
    readonly 504: readonly ["errors/request_timeout"];
};
/** The types that are not in that list: of limits, of expired keys, and of requests that HTTP itself refuses. */
declare const OTHER_ERROR_TYPES: {
    readonly 400: readonly ["errors/malformed_request"];
    readonly 401: readonly ["api/expired_authorization"];
    readonly 408: readonly ["errors/request_timeout"];
    readonly 413: readonly ["errors/payload_too_large"];
    readonly 429: readonly ["api/too_many_requests", "provider/too_many_requests"];
    readonly 431: readonly ["errors/headers_too_large"];
};
type TypesIn<Table, Status> = Status extends keyof Table ? Table[Status] extends readonly (infer Type extends string)[] ? Type : never : never;
/** A status that the service answers with an error object. */
type ErrorStatus = keyof typeof SEND_ERROR_TYPES | keyof typeof OTHER_ERROR_TYPES;
/** The error types by status: for `createProblem` of `headgate/http`. */
type ErrorTypesByStatus = {
    readonly [Status in ErrorStatus]: TypesIn<typeof SEND_ERROR_TYPES, Status> | TypesIn<typeof OTHER_ERROR_TYPES, Status>;
};

/** Every provider that the specification names. Names are lower case. */
declare const PROVIDER_NAMES: readonly ["linkedin", "whatsapp", "google", "outlook", "imap", "telegram", "instagram", "mock"];
type ProviderName = (typeof PROVIDER_NAMES)[number];
/** The use of a provider. */
type Family = 'emails' | 'calendar' | 'messaging' | 'social';

/** Hosts, ports and users of a mail account, shown beside a 401: its owner sees the tried values. Never a password. */
interface ConnectionParams {
    readonly imap_host: string;
    readonly imap_port: number;
    readonly imap_user: string;
    readonly smtp_host: string;
    readonly smtp_port: number;
    readonly smtp_user: string;
    readonly imap_encryption?: string;
}
/** The parts of an error answer beside status, type and detail. */
interface ErrorExtras {
    /** Seconds after which a retry makes sense: `retry-after`. */
    readonly retryAfter?: number | undefined;
    readonly connectionParams?: ConnectionParams | undefined;
    /** Logged, and never shown. */
    readonly cause?: unknown;
}
type Arguments = {
    [Status in ErrorStatus]: [status: Status, type: ErrorTypesByStatus[Status], detail: string, extras?: ErrorExtras];
}[ErrorStatus];
/** An error that a client may see: a pair of status and type from the table of errors, and what to do about it. */
declare class ServiceError extends Error {
    readonly name: string;
    readonly status: ErrorStatus;
    readonly type: ErrorTypesByStatus[ErrorStatus];
    readonly retryAfter: number | undefined;
    readonly connectionParams: ConnectionParams | undefined;
    constructor(...[status, type, detail, extras]: Arguments);
}

/** A file that was received. */
interface SpooledFile {
    readonly size: number;
    /** The bytes. Each call reads them from their start. */
    open(): Readable;
    /** Frees memory and disk, unless it is held. */
    close(): Promise<void>;
    /**
     * Keeps the bytes after `close`.
     * @returns ends the hold
     */
    hold(): () => Promise<void>;
}

/** The sender or a recipient of an email. */
interface Mailbox {
    readonly address: string;
    readonly name?: string | undefined;
}
/** A file of an email. */
interface Attachment {
    readonly filename: string;
    readonly contentType: string;
    /** The HTML body shows the file by this `Content-ID`. Undefined: the file stands beside the body. */
    readonly contentId?: string | undefined;
    readonly file: SpooledFile;
}
/** A whole email, ready to be sent: its envelope, and its message in MIME form. */
interface ComposedMail {
    readonly messageId: string;
    readonly from: Mailbox;
    /** Addresses of all recipients: to, cc and bcc. */
    readonly recipients: readonly string[];
    /** The provider's name for the conversation of the email that this email answers. */
    readonly thread?: string | undefined;
    /** The files of the message, for a provider that takes them one by one. */
    readonly attachments: readonly Attachment[];
    /**
     * The message as bytes. Each call reads it from its start.
     * @param options their defaults are false
     */
    open(options?: {
        /** With the field `Bcc`, for a provider that takes the recipients from the message and removes the field itself. */
        readonly keepBcc?: boolean;
        /** Without tracked links and pixel. */
        readonly untracked?: boolean;
        readonly withoutAttachments?: boolean;
    }): Readable;
    /**
     * Keeps the files that the message is read from beyond the request.
     * @returns frees them
     */
    hold(): () => Promise<void>;
}

/** Why a connection was not made. */
type EgressFailure = 
/** The policy does not allow an address of the host, or the port. */
'forbidden'
/** The name of the host resolves to no address. */
 | 'unresolved'
/** The host, or the proxy in front of it, refused the connection or ended it. */
 | 'refused'
/** No connection was made in time. */
 | 'timeout'
/** TLS could not be agreed on: the certificate is wrong, for example. */
 | 'tls'
/** The proxy refused its user or password. */
 | 'proxy_credentials';
/** A connection to the outside was not made. Nothing was sent. The message names no address: an answer may show it. */
declare class EgressError extends Error {
    readonly failure: EgressFailure;
    readonly name = "EgressError";
    constructor(failure: EgressFailure, message: string, options?: ErrorOptions);
}
/** Where to connect to. */
interface NetTarget {
    readonly host: string;
    readonly port: number;
    /** Whether TLS begins with the connection. Certificates are checked against `host`. */
    readonly tls: boolean;
}
/**
 * The only way out of the process. Each address is judged by the policy before a connection is made to it. If a proxy
 * is set for the account, every connection uses it.
 */
interface Net {
    /** @throws EgressError */
    connect(target: NetTarget, signal: AbortSignal): Promise<Socket>;
    /** An HTTP request. No redirect is followed. @throws EgressError, or the error of `fetch` after the connection */
    fetch(url: string | URL, init?: RequestInit): Promise<Response>;
}

/** The languages of the wizard. The first is used if the browser asks for other languages. */
declare const LANGUAGES: readonly ["en", "de"];
type Language = (typeof LANGUAGES)[number];
/** A text in every language. */
type Words = Readonly<Record<Language, string>>;

declare const PROXY_PROTOCOLS: readonly ["http", "https", "socks4", "socks5"];
/** A proxy, as it is configured. */
interface CustomProxy {
    readonly protocol: (typeof PROXY_PROTOCOLS)[number];
    readonly host: string;
    readonly port: number;
    readonly username?: string | undefined;
    readonly password?: string | undefined;
}

/** An input of a page. Its name begins with a letter. */
type Field = {
    readonly name: string;
    readonly label: Words;
    readonly hint?: Words | undefined;
    /** Shown at first. A password is never shown. */
    readonly initial?: string | undefined;
    readonly required?: boolean | undefined;
} & ({
    readonly kind: 'text' | 'email' | 'password';
    readonly autocomplete?: string | undefined;
} | {
    readonly kind: 'number';
    readonly min: number;
    readonly max: number;
    /** Shown beside the field before it, if there is room, as the port of a server. Default: below it. */
    readonly beside?: boolean | undefined;
} | {
    readonly kind: 'checkbox';
} | {
    readonly kind: 'choice';
    readonly options: readonly {
        readonly value: string;
        readonly label: Words;
    }[];
});
interface StepBase {
    /** Part of the page's address: lower-case letters and hyphens. */
    readonly name: string;
    readonly title: Words;
    readonly intro?: Words | undefined;
    /** A picture such as a QR code or a captcha, as a `data:` address. */
    readonly image?: {
        readonly url: string;
        readonly description: Words;
    } | undefined;
}
/** Fields to fill in. */
interface FormStep extends StepBase {
    readonly kind: 'form';
    readonly fields: readonly Field[];
}
/** A code that the provider sent or shows to the user. It is submitted as `code`. */
interface CodeStep extends StepBase {
    readonly kind: 'code';
}
/** Something that happens elsewhere, such as a scan by a telephone. The page submits itself, without values. */
interface WaitStep extends StepBase {
    readonly kind: 'wait';
    /** Seconds between two submissions, 3 or more. */
    readonly everySeconds: number;
}
/**
 * A page whose button leads to the provider's own site, for OAuth. The site sends the user back to `callbackUrl` with
 * `callbackState` as the parameter `state`. Then `submit` is called with the query of the callback as the value
 * `query`. The wizard already checked that the state is the newest of this browser, and was not used before.
 *
 * Errors of the site, such as `error=access_denied`, arrive in the same way. If `submit` throws then, the page shows
 * the error and offers another try. After an answer that linked nothing, the next try calls `begin` again.
 */
interface AwayStep extends StepBase {
    readonly kind: 'away';
    /** https, or http to a loopback address. */
    readonly url: string;
    readonly button: Words;
}
/** One page of the way to an account. */
type LinkStep = FormStep | CodeStep | WaitStep | AwayStep;
/** The values that were entered on a page, checked against its fields. A field that was left empty is absent. */
type StepValues = Readonly<Record<string, string | number | boolean>>;
/** The data that a flow may need beside the user's entries. */
interface LinkContext {
    /** The probable user, as the application names it. */
    readonly loginHint: string | undefined;
    /** The account that is reconnected. Its credentials may not work any more. */
    readonly reconnect: {
        readonly providerUserId: string;
        readonly name: string;
        readonly credentials: unknown;
    } | undefined;
    /** The providers that the link offers. */
    readonly offered: readonly ProviderName[];
    readonly proxy: CustomProxy | undefined;
    /** The only way out: through the proxy, if there is one. */
    readonly net: Net;
    /** The address to which a provider's own site sends the user back: the `redirect_uri` of OAuth. */
    readonly callbackUrl: string;
    /**
     * The `state` that the provider's site must return. Each call of `begin` gets a new one, and only the newest counts.
     * If an away step follows another, its address needs the state that `stepOf` gets.
     */
    readonly callbackState: string;
    /** The part of the link's `config` that is for this provider. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** Milliseconds since 1970. */
    readonly now: number;
    readonly signal: AbortSignal;
}
/** An error that the user can correct. It is shown on the page, beside its field or above all. */
interface OwnerFault {
    readonly field?: string | undefined;
    readonly message: Words;
}
/** An account that the provider identified. */
interface IdentifiedAccount {
    /** The provider's own id of the account, which never changes. */
    readonly providerUserId: string;
    /** The user's name for the account, for example its address. */
    readonly name: string;
    /** The data that the provider needs to use the account. Stored sealed. */
    readonly credentials: unknown;
    /** How long the initial sync takes, in milliseconds. Default: 0. */
    readonly initialSyncMs?: number | undefined;
}
/** The provider's answer to a submitted page. */
type LinkAnswer<State> = 
/** Another page. Faults are shown on it: for a page whose values were found, and did not work. */
{
    readonly kind: 'next';
    readonly state: State;
    readonly faults?: readonly OwnerFault[] | undefined;
} | {
    readonly kind: 'invalid';
    readonly faults: readonly OwnerFault[];
} | {
    readonly kind: 'identified';
    readonly account: IdentifiedAccount;
}
/** The user wants another provider that the link offers. Its first page follows. */
 | {
    readonly kind: 'provider';
    readonly name: ProviderName;
}
/** The account can never be linked. The user returns to the application with this error. */
 | {
    readonly kind: 'refused';
    readonly type: 'api/restricted_account';
    readonly title: string;
    readonly detail: string;
};
/**
 * How a provider asks the user for an account, page by page. A flow keeps nothing in memory: its state is JSON, which
 * the wizard stores sealed between two pages, so any process can serve the next page.
 */
interface LinkFlow<State = unknown> {
    /** The state of the first page. */
    begin(context: LinkContext): Promise<State>;
    /** The page of a state. */
    stepOf(state: State, context: LinkContext): LinkStep;
    /** Takes the values that were entered on the page of the state. */
    submit(state: State, values: StepValues, context: LinkContext): Promise<LinkAnswer<State>>;
}

/** A provider that the service can link accounts of. */
interface Provider {
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
interface MailAccount {
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
interface SendTrace {
    readonly messageId: string;
    /** What `draft` returned for the email. Null: the account is not fenced. */
    readonly draft: string | null;
}
/** The provider's ids of a sent email. */
interface SentIds {
    readonly providerId: string | null;
    readonly immutableId: string | null;
    readonly thread: string | null;
    /** The `Message-ID` that recipients see, with its brackets, if the provider may replace ours. */
    readonly messageId?: string | undefined;
    /** Recipients that the provider refused, while it sent the email to the others. */
    readonly rejected: readonly string[];
}
/** A sent email for the sender's own folder: without tracking, and with the recipients of `bcc`. */
interface SentCopy {
    readonly messageId: string;
    readonly sentAt: Date;
    /** The message in MIME form. Undefined: it is too large to be filed. */
    measure(): Promise<CopyMessage | undefined>;
}
/** A message of a known size in bytes. Each `open` reads it from its start. */
interface CopyMessage {
    readonly size: number;
    open(): Readable;
}
/**
 * The result of filing a copy. `found`: the folder already contains it; `no_folder`: the mailbox lacks a sent folder.
 */
type CopyResult = 'filed' | 'found' | 'no_folder' | 'too_large';
/** An email that is answered by another email. */
interface Parent {
    /** With its brackets. */
    readonly messageId: string;
    readonly references: readonly string[];
    readonly subject: string | undefined;
    readonly thread: string | undefined;
}
/** Sends emails in the name of an account. Errors are {@link ProviderError}s. */
interface MailProvider {
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
type Sent = 'no' | 'unknown';
/** An error of a provider, as the client sees it. It also says whether the email was sent. */
declare class ProviderError<Status extends ErrorStatus = ErrorStatus> extends ServiceError {
    readonly sent: Sent;
    readonly name = "ProviderError";
    constructor(sent: Sent, status: Status, type: ErrorTypesByStatus[Status], detail: string, extras?: ErrorExtras);
}

/**
 * The types for authors of plug-ins: a file named in PROVIDERS exports `createProvider`, and these types describe it
 * and everything that it uses. See apps/communication-api/docs/plugins.md.
 */

/** The parts of the service that a plug-in receives. */
interface PluginKit {
    /** The only errors of a mail provider that say whether the email was sent. */
    readonly ProviderError: typeof ProviderError;
}
/** Makes the provider, once per process. */
type CreateProvider = (kit: PluginKit) => Provider | Promise<Provider>;

export { type AwayStep, type CodeStep, type ComposedMail, type CopyMessage, type CopyResult, type CreateProvider, type CustomProxy, EgressError, type EgressFailure, type ErrorStatus, type ErrorTypesByStatus, type Family, type Field, type FormStep, type IdentifiedAccount, type Language, type LinkAnswer, type LinkContext, type LinkFlow, type LinkStep, type MailAccount, type MailProvider, type Mailbox, type Net, type NetTarget, type OwnerFault, type Parent, type PluginKit, type Provider, type ProviderName, type SendTrace, type Sent, type SentCopy, type SentIds, type StepValues, type WaitStep, type Words };
