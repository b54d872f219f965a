import { COUNTRIES } from '../domain/countries.ts';
import { type CustomProxy, isProxyHost, PROXY_PROTOCOLS } from '../domain/proxy.ts';
import type { EnteredFault, FaultName } from '../links/wizard-sessions.ts';
import type { Field, LinkStep, StepValues } from '../providers/link-flow.ts';
import { TEXTS } from './text/text.ts';

/** The wizard's own fields. A provider's fields begin with a letter, so their names differ. */
export const PROXY_FIELDS = {
  protocol: '_proxy_protocol',
  host: '_proxy_host',
  port: '_proxy_port',
  username: '_proxy_username',
  password: '_proxy_password',
} as const;
export const COUNTRY_FIELD = '_country';

const MAX_LENGTH = 1_000;
const EMAIL = /^[^\s@<>"(),:;]{1,64}@[^\s@<>"(),:;]{1,255}$/;

/** The fields of a submitted form, by name. */
export type Entered = ReadonlyMap<string, string>;

/** The values that were entered on a page. */
export interface CheckedValues {
  readonly values: StepValues;
  readonly faults: readonly EnteredFault[];
  /** Values that may be shown again: no passwords and no codes. */
  readonly shown: Readonly<Record<string, string>>;
}

const CODE_FIELD: Field = {
  kind: 'text',
  name: 'code',
  label: { en: TEXTS.en.code, de: TEXTS.de.code },
  required: true,
  autocomplete: 'one-time-code',
};

/** The fields of a provider's page. */
export function fieldsOf(step: LinkStep): readonly Field[] {
  if (step.kind === 'form') return step.fields;
  return step.kind === 'code' ? [CODE_FIELD] : [];
}

/** Whether a page asks for something that could be guessed. */
export const asksForSecret = (step: LinkStep): boolean =>
  step.kind === 'code' || fieldsOf(step).some(({ kind }) => kind === 'password');

/** No field needs control characters, and PostgreSQL stores no NUL. */
const plainText = (given: string): string => given.replace(/\p{Cc}/gu, '').trim();

/** Reads the values that were entered on a provider's page, and checks them against the fields. */
export function checkValues(step: LinkStep, entered: Entered): CheckedValues {
  const values: Record<string, string | number | boolean> = {};
  const shown: Record<string, string> = {};
  const faults: EnteredFault[] = [];
  for (const field of fieldsOf(step)) {
    const { name, kind } = field;
    const given = entered.get(name) ?? '';
    const text = kind === 'password' ? given : plainText(given);
    if (kind !== 'password' && step.kind !== 'code') shown[name] = text.slice(0, MAX_LENGTH);
    const value = readValue(field, text);
    if (typeof value === 'object') faults.push({ field: name, message: value.fault });
    else if (value !== undefined) values[name] = value;
  }
  return { values, shown, faults };
}

function readValue(field: Field, text: string): string | number | boolean | undefined | { readonly fault: FaultName } {
  if (field.kind === 'checkbox') return text !== '';
  if (text === '') return field.required === true ? { fault: 'required' } : undefined;
  if (text.length > MAX_LENGTH) return { fault: 'tooLong' };
  if (field.kind === 'email') return EMAIL.test(text) ? text : { fault: 'email' };
  if (field.kind === 'choice') return field.options.some(({ value }) => value === text) ? text : { fault: 'choice' };
  if (field.kind !== 'number') return text;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return number >= field.min && number <= field.max ? number : { fault: 'number' };
}

/**
 * The proxy that the user entered. Undefined: none.
 * @param before the proxy that was entered before: its password is kept if the page comes back without one
 */
export function checkProxy(
  entered: Entered,
  before: CustomProxy | undefined,
): {
  readonly proxy: CustomProxy | undefined;
  readonly faults: readonly EnteredFault[];
  readonly shown: Readonly<Record<string, string>>;
} {
  const textOf = (key: keyof typeof PROXY_FIELDS): string => plainText(entered.get(PROXY_FIELDS[key]) ?? '');
  const [host, port, username] = [textOf('host'), textOf('port'), textOf('username')];
  const protocol = PROXY_PROTOCOLS.find((each) => each === textOf('protocol')) ?? PROXY_PROTOCOLS[0];
  const isSame = before?.host === host && String(before.port) === port && (before.username ?? '') === username;
  const password = (entered.get(PROXY_FIELDS.password) || (isSame ? before.password : undefined)) ?? '';
  const shown = {
    [PROXY_FIELDS.protocol]: protocol,
    [PROXY_FIELDS.host]: host.slice(0, MAX_LENGTH),
    [PROXY_FIELDS.port]: port.slice(0, MAX_LENGTH),
    [PROXY_FIELDS.username]: username.slice(0, MAX_LENGTH),
  };
  if (host === '') return { proxy: undefined, faults: [], shown };
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  const faults: EnteredFault[] = [
    ...(isProxyHost(host) ? [] : [{ field: PROXY_FIELDS.host, message: 'proxyHost' as const }]),
    ...(number >= 1 && number <= 65_535 ? [] : [{ field: PROXY_FIELDS.port, message: 'proxyPort' as const }]),
    ...(username.length <= 255 ? [] : [{ field: PROXY_FIELDS.username, message: 'tooLong' as const }]),
    ...(password.length <= 255 ? [] : [{ field: PROXY_FIELDS.password, message: 'tooLong' as const }]),
  ];
  const proxy = {
    protocol,
    host,
    port: number,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
  };
  return { proxy: faults.length === 0 ? proxy : undefined, faults, shown };
}

/** The country that the user chose. Undefined: the service chooses. */
export const countryOf = (entered: Entered): string | undefined =>
  COUNTRIES.find((code) => code === entered.get(COUNTRY_FIELD));
