import type { LineParser, Names } from './line.ts';
import type { RouteFinder } from './request-route.ts';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const TIME = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/;

/** Reads lines in the common or the combined format, also with more fields at the end. */
export function combinedParser(find: RouteFinder, names: Names): LineParser {
  const readTime = cachedTime();
  let lines = 0;
  return ({ text: line }) => {
    lines++;
    const afterAddress = line.indexOf(' ');
    const bracket = line.indexOf(' [', afterAddress);
    const endOfTime = line.indexOf('] "', bracket);
    const endOfRequest = endOfTime === -1 ? -1 : closingQuote(line, endOfTime + 3);
    if (afterAddress < 1 || bracket === -1 || endOfRequest === -1) return undefined;
    const at = readTime(line.slice(bracket + 2, endOfTime));
    if (at === undefined) return undefined;
    const target = targetOf(line.slice(endOfTime + 3, endOfRequest));
    // A client that sent no HTTP, such as a TLS handshake.
    if (target === undefined) return 'unreadable';
    const user = line.slice(line.indexOf(' ', afterAddress + 1) + 1, bracket);
    const fields = {
      remoteAddress: line.slice(0, afterAddress),
      remoteUser: user === '-' ? undefined : user,
      line: undefined,
    };
    const found = find(target.method, target.target, fields);
    if (found === undefined) return 'no_route';
    if (found.account === undefined) return 'no_account';
    return {
      account: names.get(found.account),
      route: found.route,
      at,
      // The log shows whole seconds: among equal ones the order of the lines counts.
      order: lines,
      provider: undefined,
      plan: undefined,
      lane: undefined,
      groups: undefined,
      cost: undefined,
      logged: undefined,
      id: undefined,
      settles: undefined,
      isExact: true,
    };
  };
}

/** Place of the quote that ends a field. Inside the field a backslash comes before each quote. */
function closingQuote(line: string, from: number): number {
  let at = line.indexOf('"', from);
  while (at > from && isEscaped(line, at)) at = line.indexOf('"', at + 1);
  return at;
}

function isEscaped(line: string, at: number): boolean {
  let backslashes = 0;
  while (line[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** Method and target of a request line. */
export function targetOf(request: string): { readonly method: string; readonly target: string } | undefined {
  const first = request.indexOf(' ');
  const last = request.lastIndexOf(' HTTP/');
  const target = request.slice(first + 1, last === -1 ? undefined : last);
  return first < 1 || !target.startsWith('/') ? undefined : { method: request.slice(0, first), target };
}

/** Many lines share a second. */
function cachedTime(): (text: string) => number | undefined {
  let last = '';
  let ms: number | undefined;
  return (text) => {
    if (text === last) return ms;
    ms = clfTime(text);
    last = ms === undefined ? '' : text;
    return ms;
  };
}

/** Milliseconds since 1970 of a time such as `10/Oct/2000:13:55:36 -0700`; undefined if it is another text. */
export function clfTime(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const [, day, month = '', year, hour, minute, second, sign, offsetHours, offsetMinutes] = match;
  const index = MONTHS.indexOf(month);
  if (index === -1) return undefined;
  const utc = Date.UTC(Number(year), index, Number(day), Number(hour), Number(minute), Number(second));
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  return sign === '-' ? utc + offset : utc - offset;
}
