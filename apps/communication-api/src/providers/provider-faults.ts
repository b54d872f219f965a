import { LANGUAGES } from '../domain/language.ts';
import { isProviderName, PROVIDER_NAMES } from '../domain/providers.ts';
import type { Field, LinkStep } from './link-flow.ts';
import type { MailProvider } from './provider.ts';

const FAMILIES = ['emails', 'calendar', 'messaging', 'social'];
const MAIL_METHODS = [
  'isFenced',
  'draft',
  'discard',
  'sendDraft',
  'send',
  'find',
  'parent',
] as const satisfies readonly (keyof MailProvider)[];
const FLOW_METHODS = ['begin', 'stepOf', 'submit'] as const;
const FIELD_KINDS = ['text', 'email', 'password', 'number', 'checkbox', 'choice'];
const LEAST_WAIT_SECONDS = 3;

type Unknown = Readonly<Record<string, unknown>>;

/** The faults of an object that should be a provider, for its author. No method of the object is called. */
export function faultsOf(candidate: unknown): readonly string[] {
  if (typeof candidate !== 'object' || candidate === null) return ['it is not an object'];
  const { name, title, supports, mail, link } = candidate as Unknown;
  const faults: string[] = [];
  if (typeof name !== 'string' || !isProviderName(name))
    faults.push(`name: must be one of ${PROVIDER_NAMES.join(', ')} (it is ${JSON.stringify(name)})`);
  if (!isText(title)) faults.push('title: must be a text');
  if (!(supports instanceof Set) || supports.size === 0 || ![...supports].every((each) => FAMILIES.includes(each)))
    faults.push(`supports: must be a Set with some of ${FAMILIES.join(', ')}`);
  if (mail === undefined && link === undefined) faults.push('link, mail: at least one of them is needed');
  if (link !== undefined) faults.push(...missingMethods('link', link, FLOW_METHODS));
  if (mail !== undefined) faults.push(...missingMethods('mail', mail, MAIL_METHODS));
  return faults;
}

function missingMethods(place: string, object: unknown, methods: readonly string[]): readonly string[] {
  if (typeof object !== 'object' || object === null) return [`${place}: must be an object`];
  return methods
    .filter((method) => typeof (object as Unknown)[method] !== 'function')
    .map((method) => `${place}.${method}: must be a function`);
}

/** The faults of a page of a flow, for its author. */
export function stepFaultsOf(step: LinkStep): readonly string[] {
  const place = `page ${JSON.stringify(step.name)}`;
  const faults: string[] = [];
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(step.name))
    faults.push(`${place}: the name must be lower-case letters and hyphens`);
  if (!isWords(step.title)) faults.push(`${place}: title: ${NO_WORDS}`);
  if (step.intro !== undefined && !isWords(step.intro)) faults.push(`${place}: intro: ${NO_WORDS}`);
  if (step.image !== undefined && !step.image.url.startsWith('data:image/'))
    faults.push(`${place}: image.url: must begin with data:image/, since pages load nothing from elsewhere`);
  if (step.image !== undefined && !isWords(step.image.description))
    faults.push(`${place}: image.description: ${NO_WORDS}`);
  if (step.kind === 'form') faults.push(...fieldFaultsOf(step.fields).map((fault) => `${place}: ${fault}`));
  else if (step.kind === 'wait') {
    if (!(step.everySeconds >= LEAST_WAIT_SECONDS))
      faults.push(`${place}: everySeconds: must be ${LEAST_WAIT_SECONDS} or more`);
  } else if (step.kind === 'away') {
    if (!isWords(step.button)) faults.push(`${place}: button: ${NO_WORDS}`);
    if (!/^https?:\/\//.test(step.url)) faults.push(`${place}: url: must be an https address`);
  } else if (step.kind !== 'code') faults.push(`${place}: kind: must be form, code, wait or away`);
  return faults;
}

function fieldFaultsOf(fields: readonly Field[]): readonly string[] {
  const names = fields.map(({ name }) => name);
  return fields.flatMap((field, index) => {
    const place = `field ${JSON.stringify(field.name)}`;
    return [
      ...(/^[a-z][\w-]*$/i.test(field.name) ? [] : [`${place}: the name must begin with a letter`]),
      ...(names.indexOf(field.name) === index ? [] : [`${place}: another field has this name`]),
      ...(FIELD_KINDS.includes(field.kind) ? [] : [`${place}: kind: must be one of ${FIELD_KINDS.join(', ')}`]),
      ...(isWords(field.label) ? [] : [`${place}: label: ${NO_WORDS}`]),
    ];
  });
}

const NO_WORDS = `must be a text in each language: ${LANGUAGES.join(', ')}`;

const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';

const isWords = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && LANGUAGES.every((language) => isText((value as Unknown)[language]));
