import type { Words } from '../domain/language.ts';
import type { ProviderName } from '../domain/providers.ts';
import type { CustomProxy } from '../domain/proxy.ts';
import type { Net } from '../security/net.ts';

/** An input of a page. Its name begins with a letter. */
export type Field = {
  readonly name: string;
  readonly label: Words;
  readonly hint?: Words | undefined;
  /** Shown at first. A password is never shown. */
  readonly initial?: string | undefined;
  readonly required?: boolean | undefined;
} & (
  | { readonly kind: 'text' | 'email' | 'password'; readonly autocomplete?: string | undefined }
  | {
      readonly kind: 'number';
      readonly min: number;
      readonly max: number;
      /** Shown beside the field before it, if there is room, as the port of a server. Default: below it. */
      readonly beside?: boolean | undefined;
    }
  | { readonly kind: 'checkbox' }
  | { readonly kind: 'choice'; readonly options: readonly { readonly value: string; readonly label: Words }[] }
);

interface StepBase {
  /** Part of the page's address: lower-case letters and hyphens. */
  readonly name: string;
  readonly title: Words;
  readonly intro?: Words | undefined;
  /** A picture such as a QR code or a captcha, as a `data:` address. */
  readonly image?: { readonly url: string; readonly description: Words } | undefined;
}

/** Fields to fill in. */
export interface FormStep extends StepBase {
  readonly kind: 'form';
  readonly fields: readonly Field[];
}

/** A code that the provider sent or shows to the user. It is submitted as `code`. */
export interface CodeStep extends StepBase {
  readonly kind: 'code';
}

/** Something that happens elsewhere, such as a scan by a telephone. The page submits itself, without values. */
export interface WaitStep extends StepBase {
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
export interface AwayStep extends StepBase {
  readonly kind: 'away';
  /** https, or http to a loopback address. */
  readonly url: string;
  readonly button: Words;
}

/** One page of the way to an account. */
export type LinkStep = FormStep | CodeStep | WaitStep | AwayStep;

/** The values that were entered on a page, checked against its fields. A field that was left empty is absent. */
export type StepValues = Readonly<Record<string, string | number | boolean>>;

/** The data that a flow may need beside the user's entries. */
export interface LinkContext {
  /** The probable user, as the application names it. */
  readonly loginHint: string | undefined;
  /** The account that is reconnected. Its credentials may not work any more. */
  readonly reconnect:
    | { readonly providerUserId: string; readonly name: string; readonly credentials: unknown }
    | undefined;
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
export interface OwnerFault {
  readonly field?: string | undefined;
  readonly message: Words;
}

/** An account that the provider identified. */
export interface IdentifiedAccount {
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
export type LinkAnswer<State> =
  /** Another page. Faults are shown on it: for a page whose values were found, and did not work. */
  | { readonly kind: 'next'; readonly state: State; readonly faults?: readonly OwnerFault[] | undefined }
  | { readonly kind: 'invalid'; readonly faults: readonly OwnerFault[] }
  | { readonly kind: 'identified'; readonly account: IdentifiedAccount }
  /** The user wants another provider that the link offers. Its first page follows. */
  | { readonly kind: 'provider'; readonly name: ProviderName }
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
export interface LinkFlow<State = unknown> {
  /** The state of the first page. */
  begin(context: LinkContext): Promise<State>;
  /** The page of a state. */
  stepOf(state: State, context: LinkContext): LinkStep;
  /** Takes the values that were entered on the page of the state. */
  submit(state: State, values: StepValues, context: LinkContext): Promise<LinkAnswer<State>>;
}
