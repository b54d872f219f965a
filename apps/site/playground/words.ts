import type { WindowStatus } from 'headgate';
import { type Answered, activeAt, maxAt, nameOf, type WindowRow, windowSetOf } from './history.ts';
import { type LimitField, type PlaygroundLimits, SUBJECT } from './limits.ts';
import { formatMs } from './moments.ts';

/** `All methods 3/10s`. */
export const labelOf = (window: Pick<WindowStatus, 'limit' | 'max' | 'durationMs'>): string =>
  `${window.limit === 'route' ? 'Route' : 'All methods'} ${nameOf(window)}`;

/** A decision in short: `accepted`, or the window that rejected. */
export function verdict({ decision }: Answered): string {
  return decision.accepted || decision.shown === undefined ? 'accepted' : `rejected by ${labelOf(decision.shown)}`;
}

/** A decision, sentence by sentence. */
export function explain({ atMs, decision, fields }: Answered): readonly string[] {
  const { shown } = decision;
  if (shown === undefined) return ['No window limits this request.'];
  if (decision.accepted) return acceptance(decision.trace, shown, atMs);
  if (shown.max === 0) return [`${labelOf(shown)} allows nothing, so it rejects every request.`, NOT_CHARGED];
  const endMs = atMs + shown.resetMs;
  return [
    `${labelOf(shown)} is full: ${shown.max} of ${shown.max} are used since ${formatMs(shown.startedAt ?? 0)}.`,
    NOT_CHARGED,
    `This window ends at ${formatMs(endMs)}, in ${formatMs(shown.resetMs)}. retry-after has whole seconds, rounded up: ` +
      `${fields['retry-after']}. A client that waits so long gets past this window.`,
  ];
}

const NOT_CHARGED = 'The request is rejected, and no window is charged.';

function acceptance(trace: readonly WindowStatus[], shown: WindowStatus, atMs: number): readonly string[] {
  const starts = trace
    .filter(({ startedAt, max, remaining }) => startedAt === atMs && max - remaining === 1)
    .map(labelOf);
  const sentences = [trace.length === 1 ? 'The window has room.' : 'Every window has room, and each is charged 1.'];
  if (starts.length > 0) {
    sentences.push(
      `This request starts ${list(starts)}, because ${starts.length === 1 ? 'it was' : 'they were'} not active.`,
    );
  }
  sentences.push(
    `The headers show the last window, ${labelOf(shown)}: ${shown.remaining} of ${shown.max} left, for ${formatMs(shown.resetMs)}.`,
  );
  return sentences;
}

const list = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

/** A window at a moment: `2 of 3 used, ends in 4 s`. */
export function stateAt(row: WindowRow, atMs: number): string {
  const max = maxAt(row, atMs);
  if (max === undefined) return 'not among the limits now';
  if (max === 0) return 'allows nothing';
  const active = activeAt(row, atMs);
  if (active === undefined) return 'not active: the next accepted request starts it';
  return `${active.used} of ${max} used, ends in ${formatMs(active.endMs - atMs)}`;
}

/** The heading of a window: `3/10s`, and what it becomes if it is adjusted. */
export function headingOf({ maxes, durationMs }: WindowRow): string {
  const [first, second] = maxes.map(({ max, fromMs }) => ({
    name: max === undefined ? undefined : nameOf({ max, durationMs }),
    at: formatMs(fromMs),
  }));
  if (second === undefined || second.name === first?.name) return first?.name ?? '';
  if (first?.name === undefined) return `${second.name} from ${second.at} on`;
  return second.name === undefined
    ? `${first.name} until ${second.at}`
    : `${first.name}, ${second.name} from ${second.at} on`;
}

/** What a limit means, in words: `3 requests in 10 s`. */
export function meaningOf(limits: PlaygroundLimits, field: LimitField): string {
  const windows = windowSetOf(limits).windows.filter(({ limit }) => (limit === 'route') === (field === 'route'));
  const [first] = windows;
  if (first === undefined) return field === 'route' ? 'No limit of its own.' : 'No limit for every route.';
  const what = windows.map(({ max, durationMs }) => `${count(max)} in ${formatMs(durationMs)}`);
  if (windows.length > 1) {
    return `${capital(list(what))}. A request must fit each of these windows. A window opens with an accepted request, and ends exactly its time later.`;
  }
  if (first.max === 0) return 'Every request is rejected.';
  return `${capital(what.join(''))}. The window opens with an accepted request, ends exactly ${formatMs(first.durationMs)} later, and opens again with the next one.`;
}

/** What a limit applies to. */
export const SCOPES: Readonly<Record<LimitField, string>> = {
  allMethods: 'Applies to every route alike. Each route has a count of its own.',
  route: `Applies to ${SUBJECT.route} alone, and is checked first.`,
};

const count = (max: number): string => (max === 0 ? 'no request' : max === 1 ? '1 request' : `${max} requests`);
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
