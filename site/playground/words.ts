import type { WindowStatus } from 'headgate';
import { type Answered, activeAt, nameOf, type WindowRow } from './history.ts';
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
  if (row.max === 0) return 'allows nothing';
  const active = activeAt(row, atMs);
  if (active === undefined) return 'not active: the next accepted request starts it';
  return `${active.used} of ${row.max} used, ends in ${formatMs(active.endMs - atMs)}`;
}
