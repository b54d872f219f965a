/** Every provider that the specification names. Names are lower case. */
export const PROVIDER_NAMES = [
  'linkedin',
  'whatsapp',
  'google',
  'outlook',
  'imap',
  'telegram',
  'instagram',
  'mock',
] as const;

/** The providers without an official interface for a person's own account. Only a plug-in can link them. */
export const PLUGIN_PROVIDERS: readonly string[] = ['linkedin', 'whatsapp', 'telegram', 'instagram'];

export type ProviderName = (typeof PROVIDER_NAMES)[number];

/** The use of a provider. */
export type Family = 'emails' | 'calendar' | 'messaging' | 'social';

/** The selectors for all providers, and for all providers of a family. They are written in upper case. */
export const WILDCARDS: Readonly<Record<string, Family | 'any'>> = {
  '*': 'any',
  '*:EMAILS': 'emails',
  '*:CALENDAR': 'calendar',
  '*:MESSAGING': 'messaging',
  '*:SOCIAL': 'social',
};

/** The providers whose links accept `auto_proxy_config`. */
export const AUTO_PROXY_PROVIDERS = ['linkedin', 'whatsapp', 'instagram'] as const satisfies readonly ProviderName[];

export const isProviderName = (text: string): text is ProviderName =>
  (PROVIDER_NAMES as readonly string[]).includes(text);
