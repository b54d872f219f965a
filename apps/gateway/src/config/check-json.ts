import { describe } from 'headgate/internal';
import type { z } from 'zod';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { hideSecrets } from './hide-secrets.ts';
import { isObject } from './json.ts';
import { alternatives, didYouMean } from './suggest.ts';

/** A value with its defaults filled in, or everything that is wrong with it. */
export type Checked<Value> = { readonly value: Value } | { readonly issues: readonly ConfigIssue[] };

/**
 * Checks JSON by a schema. Each issue names its place, in our words.
 * @param secret matches the places whose values no issue may show
 */
export function checkJson<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  secret?: RegExp,
): Checked<z.output<Schema>> {
  // zod drops a property called `__proto__`, but this may be an account's name.
  const result = schema.safeParse(renamed(input, PROTO, STAND_IN), { error: ownMessages });
  if (result.success) return { value: renamed(result.data, STAND_IN, PROTO) as z.output<Schema> };
  return { issues: result.error.issues.flatMap((issue) => issuesOf(issue, input, secret)) };
}

/**
 * Replaces zod's message for unknown options by the names of the known options, which zod's issue lacks. The message of a
 * wrong type stays empty, unless the schema has its own.
 */
function ownMessages(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return '';
  return issue.code === 'unrecognized_keys' ? Object.keys((issue.inst as z.ZodObject).shape).join(' ') : undefined;
}

/** One issue per mistake: one per unknown option, and for a union only the alternative that was meant. */
function issuesOf(
  issue: z.core.$ZodIssue,
  input: unknown,
  secret: RegExp | undefined,
  above: readonly PropertyKey[] = [],
): ConfigIssue[] {
  const path = [...above, ...issue.path].map((part) => (part === STAND_IN ? PROTO : part));
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ');
    return issue.keys.map((key) => {
      const name = key === STAND_IN ? PROTO : key;
      const hint = insteadOf(name, known) ?? didYouMean(name, known, ` (expected ${alternatives(known)})`);
      return { path: formatPath([...path, hideSecrets(name)]), reason: `unknown option${hint}` };
    });
  }
  if (issue.code === 'invalid_union') {
    const candidates = issue.errors.filter((issues) =>
      issues.some((inner) => inner.path.length > 0 || !['invalid_type', 'invalid_value'].includes(inner.code)),
    );
    const knowsNames = (issues: readonly z.core.$ZodIssue[]): boolean =>
      !issues.some((inner) => inner.path.length === 0 && inner.code === 'unrecognized_keys');
    const meant = candidates.find(knowsNames) ?? candidates[0];
    if (meant !== undefined) return meant.flatMap((inner) => issuesOf(inner, input, secret, path));
  }
  const isShown = secret?.test(formatPath(path)) !== true;
  return [{ path: formatPath(path), reason: reasonFor(issue, isShown, valueAt(input, path)) }];
}

/** zod's names for values with keys or elements. */
const SECTIONS: readonly string[] = ['object', 'record', 'array'];

function reasonFor(issue: z.core.$ZodIssue, isShown: boolean, value: unknown): string {
  if (value === undefined && issue.code === 'invalid_type') return `is missing (expected ${noun(issue.expected)})`;
  const reason = expectation(issue);
  if (value === undefined && issue.code === 'invalid_union') return `is missing: ${reason}`;
  // The reason of a custom check ends with the value already.
  if (issue.code === 'custom' || value === '') return reason;
  // A text in place of an object or an array may be a URL with a password, or another secret.
  const isMisplaced = typeof value === 'string' && issue.code === 'invalid_type' && SECTIONS.includes(issue.expected);
  if (!isMisplaced && isShown) return `${reason}, got ${describe(value)}`;
  const isWrongType = issue.code === 'invalid_type' || issue.code === 'invalid_union';
  return isWrongType ? `${reason}, got ${noun(typeName(value))}` : reason;
}

/** The library takes the limits of every account without a layer. */
function insteadOf(name: string, known: readonly string[]): string | undefined {
  const isLimits = known.includes('default') && known.includes('plans');
  if (!isLimits || !['allMethods', 'routes'].includes(name)) return undefined;
  return ` here: it belongs in a layer, as in "default": { "${name}": … }`;
}

/** zod's own messages in our words. Messages that the schema sets itself stay. */
function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return 'must not be empty';
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    case 'invalid_type':
      return issue.message === '' ? `must be ${noun(issue.expected)}` : issue.message;
    case 'invalid_value':
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    default:
      return issue.message;
  }
}

const NOUNS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  record: 'an object',
};

function noun(type: string): string {
  return NOUNS[type] ?? (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part], input);
}

const PROTO = '__proto__';
const STAND_IN = '\u0000__proto__';

/** A copy in which every property `from` is called `to`. */
function renamed(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((element) => renamed(element, from, to));
  if (!isObject(value)) return value;
  // fromEntries defines properties. An assignment of `__proto__` would set the prototype.
  return Object.fromEntries(
    Object.entries(value).map(([key, element]) => [key === from ? to : key, renamed(element, from, to)]),
  );
}
