import { MAX_AT_MS, MAX_REQUESTS } from './history.ts';
import { isFault, type LimitTexts, MAX_TEXT, readLimits, windowsOf } from './limits.ts';
import { SPANS } from './moments.ts';
import type { State } from './presets.ts';

/** The longest link that is written or read, in characters after `#`. */
export const MAX_LINK = 2_048;

/**
 * Writes a state for the part of an address after `#`: `a=3/10s&t=2s.rs`. Moments are the milliseconds since the one
 * before, in base 36. Returns undefined if that is too long for a link, or if the limits are not valid.
 */
export function encode({ current, candidate, adjustment, moments, spanMs }: State): string | undefined {
  if ([current, candidate, adjustment?.limits].some((texts) => texts !== undefined && isFault(readLimits(texts))))
    return undefined;
  const fields: [string, string][] = [
    ...limitFields(current, 'a', 'r'),
    ...(candidate === undefined ? [] : limitFields(candidate, 'ca', 'cr')),
    ...(adjustment === undefined
      ? []
      : [['x', adjustment.atMs.toString(36)] as [string, string], ...limitFields(adjustment.limits, 'xa', 'xr')]),
    ['s', (spanMs / 1_000).toString(36)],
    ['t', moments.map((atMs, index) => (atMs - (moments[index - 1] ?? 0)).toString(36)).join('.')],
  ];
  const link = fields.map(([name, value]) => `${name}=${value}`).join('&');
  return link.length <= MAX_LINK ? link : undefined;
}

function limitFields({ allMethods, route }: LimitTexts, ofAll: string, ofRoute: string): [string, string][] {
  const fields: [string, string][] = [[ofAll, windowsOf(allMethods).join(',')]];
  if (windowsOf(route).length > 0) fields.push([ofRoute, windowsOf(route).join(',')]);
  return fields;
}

/**
 * Reads what {@link encode} has written. A link can come from anyone, so what it has is bounded, and one that is not
 * whole is refused as a whole.
 * @throws Error that says what is wrong
 */
export function decode(link: string): State {
  if (link.length > MAX_LINK) throw new Error(`it is longer than ${MAX_LINK} characters`);
  const fields = new Map<string, string>();
  for (const pair of link.split('&')) {
    const [, name, value] = /^(a|r|ca|cr|x|xa|xr|s|t)=([\w/,.]*)$/.exec(pair) ?? [];
    if (name === undefined || value === undefined || fields.has(name)) throw new Error(`it has an unknown part`);
    fields.set(name, value);
  }
  const spanMs = Number.parseInt(fields.get('s') ?? '', 36) * 1_000;
  if (!SPANS.some(({ ms }) => ms === spanMs)) throw new Error('its span of time is unknown');
  return {
    current: readTexts(fields.get('a'), fields.get('r')) ?? fail('it has no limits'),
    candidate: readTexts(fields.get('ca'), fields.get('cr')),
    adjustment: readAdjustment(fields.get('x'), readTexts(fields.get('xa'), fields.get('xr'))),
    moments: readMoments(fields.get('t') ?? ''),
    spanMs,
  };
}

/** Reads the part of an address after `#`, where a browser or a mail program may have encoded some characters. */
export function decodeHash(hash: string): State {
  // Each character is at most `%2F`, so a longer one is too long in any case.
  if (hash.length > 3 * MAX_LINK) fail(`it is longer than ${MAX_LINK} characters`);
  let link: string;
  try {
    link = decodeURIComponent(hash);
  } catch {
    return fail('it has a broken "%" code');
  }
  return decode(link);
}

function readTexts(allMethods: string | undefined, route = ''): LimitTexts | undefined {
  if (allMethods === undefined) return undefined;
  if (Math.max(allMethods.length, route.length) > MAX_TEXT) fail('its limits are too long');
  const texts = { allMethods: spaced(allMethods), route: spaced(route) };
  const limits = readLimits(texts);
  return isFault(limits) ? fail(limits.message) : texts;
}

const spaced = (text: string): string => windowsOf(text).join(', ');

function readMoments(text: string): readonly number[] {
  const steps = text === '' ? [] : text.split('.', MAX_REQUESTS + 1);
  if (steps.length > MAX_REQUESTS) fail(`it has more than ${MAX_REQUESTS} requests`);
  let atMs = 0;
  return steps.map((step) => {
    atMs = readMoment(step, atMs);
    return atMs;
  });
}

function readMoment(text: string, after = 0): number {
  if (!/^[\da-z]{1,8}$/.test(text)) fail('a moment is not readable');
  const atMs = after + Number.parseInt(text, 36);
  return atMs <= MAX_AT_MS ? atMs : fail('a moment is later than a year');
}

function readAdjustment(atMs: string | undefined, limits: LimitTexts | undefined): State['adjustment'] {
  if (atMs === undefined && limits === undefined) return undefined;
  if (atMs === undefined || limits === undefined) return fail('its adjustment is not whole');
  return { atMs: readMoment(atMs), limits };
}

function fail(reason: string): never {
  throw new Error(reason);
}
