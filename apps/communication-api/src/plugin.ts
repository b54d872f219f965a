/**
 * The types for authors of plug-ins: a file named in PROVIDERS exports `createProvider`, and these types describe it
 * and everything that it uses. See apps/communication-api/docs/plugins.md.
 */
import type { Provider, ProviderError } from './providers/provider.ts';

export type { ErrorStatus, ErrorTypesByStatus } from './domain/error-types.ts';
export type { Language, Words } from './domain/language.ts';
export type { Family, ProviderName } from './domain/providers.ts';
export type { CustomProxy } from './domain/proxy.ts';
export type { ComposedMail, Mailbox } from './mail/mail.ts';
export type {
  AwayStep,
  CodeStep,
  Field,
  FormStep,
  IdentifiedAccount,
  LinkAnswer,
  LinkContext,
  LinkFlow,
  LinkStep,
  OwnerFault,
  StepValues,
  WaitStep,
} from './providers/link-flow.ts';
export type {
  CopyMessage,
  CopyResult,
  MailAccount,
  MailProvider,
  Parent,
  Provider,
  SendTrace,
  Sent,
  SentCopy,
  SentIds,
} from './providers/provider.ts';
export type { EgressError, EgressFailure, Net, NetTarget } from './security/net.ts';

/** The parts of the service that a plug-in receives. */
export interface PluginKit {
  /** The only errors of a mail provider that say whether the email was sent. */
  readonly ProviderError: typeof ProviderError;
}

/** Makes the provider, once per process. */
export type CreateProvider = (kit: PluginKit) => Provider | Promise<Provider>;
