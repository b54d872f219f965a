import type { Names, ReadEvent } from './line.ts';

const HEAD = '{"level":30,"time":"';
const TAIL = '"msg":"request"}';

/**
 * Reads a line of the gateway's log as the gateway writes it, without parsing all of it, which takes three times as long.
 * Undefined for any line that is not exactly so; then it has to be parsed. Without a backslash, no name in the line has a
 * quote, so what looks like a key is one.
 */
export function quickRequest(line: string, names: Names): ReadEvent | undefined {
  if (!(line.startsWith(HEAD) && line.endsWith(TAIL)) || line.includes('\\') || line.includes('"level"', HEAD.length))
    return undefined;
  const logged = textAfter(line, '"decision":"');
  const route = textAfter(line, '"route":"');
  const account = textAfter(line, '"account":"');
  const [cost, at, order] = [numberAfter(line, '"cost":'), numberAfter(line, '"at":'), numberAfter(line, '"order":')];
  if (logged !== 'accepted' && logged !== 'rejected') return undefined;
  if (route === undefined || account === undefined) return undefined;
  if (!(cost > 0 && at >= 0 && order >= 0) || line.includes('"degraded":') || line.includes('"blocked":'))
    return undefined;
  const provider = textAfter(line, '"provider":"');
  const plan = textAfter(line, '"plan":"');
  return {
    account: names.get(account),
    route: names.get(route),
    at,
    order,
    provider: provider === undefined ? undefined : names.get(provider),
    plan: plan === undefined ? undefined : names.get(plan),
    cost,
    logged,
    id: textAfter(line, '"req_id":"'),
    settles: undefined,
    isExact: true,
  };
}

function textAfter(line: string, key: string): string | undefined {
  const at = line.indexOf(key);
  if (at === -1) return undefined;
  const from = at + key.length;
  return line.slice(from, line.indexOf('"', from));
}

/** A whole number of up to 15 digits, with a comma behind it; otherwise NaN. */
function numberAfter(line: string, key: string): number {
  const at = line.indexOf(key);
  if (at === -1) return Number.NaN;
  let value = 0;
  let i = at + key.length;
  const from = i;
  for (; i - from < 15; i++) {
    const digit = line.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) break;
    value = value * 10 + digit;
  }
  return i > from && line[i] === ',' ? value : Number.NaN;
}
