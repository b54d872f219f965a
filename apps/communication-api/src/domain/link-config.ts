import type { ProviderName } from './providers.ts';
import type { AutoProxy, CustomProxy } from './proxy.ts';

/** The part of a link's `config` for one provider. */
export interface ProviderLinkConfig {
  readonly custom_proxy?: CustomProxy | undefined;
  readonly auto_proxy_config?: AutoProxy | undefined;
  /** imap only. Default: false. */
  readonly initial_sync_enable?: boolean | undefined;
}

/** The part of a link's `config` for every provider. The defaults are false. */
export interface GlobalLinkConfig {
  readonly allow_user_proxy_override?: boolean | undefined;
  readonly allow_user_country_override?: boolean | undefined;
  readonly wait_initial_sync?: boolean | undefined;
  readonly login_hint?: string | undefined;
}

/** `config` of a link. */
export type LinkConfig = { readonly global?: GlobalLinkConfig | undefined } & {
  readonly [Name in ProviderName]?: ProviderLinkConfig | undefined;
};
