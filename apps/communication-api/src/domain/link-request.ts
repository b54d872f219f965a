import { checkApplicationUrl } from './application-url.ts';
import type { Environment } from './key-token.ts';
import {
  type Family,
  isProviderName,
  PLUGIN_PROVIDERS,
  PROVIDER_NAMES,
  type ProviderName,
  WILDCARDS,
} from './providers.ts';
import { ServiceError } from './service-error.ts';

/** The longest time between the creation of a link and its end: 7 days. */
export const MAX_LINK_LIFETIME_MS = 604_800_000;

/** Which providers a link offers: all of a family, or those that are named. */
export type Selection =
  | { readonly kind: 'family'; readonly family: Family | 'any' }
  | { readonly kind: 'names'; readonly names: readonly ProviderName[] };

/** The purpose of a link. */
export type LinkVariant =
  | { readonly kind: 'connect'; readonly selection: Selection }
  | { readonly kind: 'reconnect'; readonly accountId: string };

/** The facts about an installed provider that the choice of providers needs. */
export interface Installed {
  readonly name: ProviderName;
  readonly supports: ReadonlySet<Family>;
}

const invalid = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

/** A given text is part of the message, so it is cut. */
const shown = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

const NAMES = PROVIDER_NAMES.join(', ');
const SELECTORS = Object.keys(WILDCARDS).join(', ');

/**
 * The variant of link that a request asks for.
 * @throws ServiceError 422 if `providers` and `account_id` are both present or both absent, or `providers` is not valid
 */
export function variantOf(request: {
  readonly providers?: string | readonly string[] | undefined;
  readonly account_id?: string | undefined;
}): LinkVariant {
  const { providers, account_id: accountId } = request;
  if ((providers === undefined) === (accountId === undefined))
    throw invalid('Give either providers, to link a new account, or account_id, to reconnect one.');
  if (accountId !== undefined) return { kind: 'reconnect', accountId };
  return { kind: 'connect', selection: selectionOf(providers ?? []) };
}

/**
 * Reads `providers`: one selector, or a list of provider names.
 * @throws ServiceError 422 that names the right form
 */
export function selectionOf(providers: string | readonly string[]): Selection {
  if (typeof providers === 'string') {
    const family = Object.hasOwn(WILDCARDS, providers) ? WILDCARDS[providers] : undefined;
    if (family !== undefined) return { kind: 'family', family };
    if (/[\s,;|]/.test(providers.trim()))
      throw invalid('providers: a string has one selector. Send an array to offer several providers.');
    return { kind: 'names', names: [nameOf(providers, 'providers')] };
  }
  if (providers.length === 0) throw invalid('providers: the array is empty. Send at least one provider name.');
  const names = providers.map((provider, index) => {
    if (provider.startsWith('*'))
      throw invalid(`providers[${index}]: a wildcard is not allowed in an array. Send it as a string.`);
    return nameOf(provider, `providers[${index}]`);
  });
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw invalid(`providers: the array has ${shown(repeated)} twice. Send each name once.`);
  return { kind: 'names', names };
}

function nameOf(text: string, place: string): ProviderName {
  if (isProviderName(text)) return text;
  const lower = text.toLowerCase();
  if (isProviderName(lower))
    throw invalid(`${place}: ${shown(text)} is not a provider name. Names are lower case: send ${shown(lower)}.`);
  if (Object.hasOwn(WILDCARDS, text.toUpperCase()))
    throw invalid(`${place}: ${shown(text)} is not a selector. Wildcards are upper case: ${SELECTORS}.`);
  throw invalid(`${place}: ${shown(text)} is unknown (expected one of ${NAMES}, or as a string ${SELECTORS}).`);
}

/**
 * The providers that a link offers, in the order of the request, or of the installation.
 * @throws ServiceError 403 if a named provider is not installed, or a wildcard leaves none
 */
export function offeredBy(selection: Selection, installed: readonly Installed[]): readonly ProviderName[] {
  const names = installed.map(({ name }) => name);
  const here = names.length === 0 ? 'No provider is installed here.' : `Installed here: ${names.join(', ')}.`;
  if (selection.kind === 'names') {
    const missing = selection.names.filter((name) => !names.includes(name));
    if (missing.length > 0)
      throw new ServiceError(
        403,
        'errors/feature_not_subscribed',
        `This service has no connector for ${missing.join(', ')}${pluginAdvice(missing)}. ${here}`,
      );
    return selection.names;
  }
  const { family } = selection;
  const offered = installed.filter(({ supports }) => family === 'any' || supports.has(family)).map(({ name }) => name);
  if (offered.length === 0)
    throw new ServiceError(
      403,
      'errors/feature_not_subscribed',
      `No provider that is installed here fits this selector. ${here}`,
    );
  return offered;
}

/** Advice for the operator, if a provider needs a plug-in. */
const pluginAdvice = (missing: readonly ProviderName[]): string => {
  const plugins = missing.filter((name) => PLUGIN_PROVIDERS.includes(name));
  return plugins.length === 0 ? '' : ` (${plugins.join(', ')}: only by a plug-in, which the variable PROVIDERS names)`;
};

/** @throws ServiceError 422 if the end of a link is not in the future, or more than 7 days away */
export function checkExpiry(expiresOn: Date, nowMs: number): void {
  const lifetime = expiresOn.getTime() - nowMs;
  if (lifetime <= 0) throw invalid('expires_on: must be in the future.');
  if (lifetime > MAX_LINK_LIFETIME_MS) throw invalid('expires_on: must be at most 7 days away.');
}

/** Where links of an application may return to. */
export interface RedirectRules {
  readonly environment: Environment;
  /** Origin and path of each must match. Empty: every https address is allowed. */
  readonly allowed: readonly string[];
}

/** @throws ServiceError 422 that says why the address is wrong */
export function checkRedirectUri(text: string, { environment, allowed }: RedirectRules): void {
  const place = placeOf(checkApplicationUrl('redirect_uri', text, environment));
  if (allowed.length > 0 && !allowed.some((each) => URL.canParse(each) && placeOf(new URL(each)) === place))
    throw invalid('redirect_uri: not in the list of redirect addresses of your application.');
}

const placeOf = ({ origin, pathname }: URL): string => origin + pathname;
