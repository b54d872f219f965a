import { inSlices } from '../../base/slices.ts';
import type { Adjustment, AdjustmentEntry, AdjustmentState, Head } from '../../core/adjustment.ts';
import type { Row } from '../../stores/postgres/database.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance } from '../ports.ts';
import { readAdjustment, readEach, readEntry } from './json.ts';

/**
 * Reads the rows of `read_adjustments_1`. They are untrusted: anything that headgate does not write is an error. Only a
 * limit that cannot be read is left out and counted, because a later version may have written it, and the others apply.
 * @throws TypeError, LimitError, OptionError, SyntaxError
 */
export async function readReplyRows([first, ...rows]: readonly Row[]): Promise<AdjustmentReply> {
  if (first === undefined) throw unexpected(first);
  const now = integerOf(first.now);
  const { kind } = first;
  switch (kind) {
    case 'none':
    case 'same':
      return { kind, now };
    case 'changes': {
      let unreadable: number | undefined;
      const entries = await readEach(rows, ({ value }) =>
        readEntry(parse(value), () => {
          unreadable = (unreadable ?? 0) + 1;
        }),
      );
      return { kind, now, entries, unreadable };
    }
    case 'all':
      return { kind, now, ...(await readState(headOf(first.version, first.value), rows)) };
    default:
      throw unexpected(kind);
  }
}

async function readState(head: Head, rows: readonly Row[]) {
  const adjustments: Adjustment[] = [];
  const recent: AdjustmentEntry[] = [];
  let unreadable: number | undefined;
  await inSlices(rows, ({ kind, value }) => {
    // The limits of entries belong to the past.
    if (kind === 'entry') recent.push(readEntry(parse(value), () => {}));
    else {
      try {
        adjustments.push(readAdjustment(parse(value)));
      } catch {
        unreadable = (unreadable ?? 0) + 1;
      }
    }
  });
  const state: AdjustmentState = { head, adjustments, recent };
  return { state, unreadable };
}

/**
 * Reads the rows of `adjustment_history_1`.
 * @throws TypeError, OptionError, SyntaxError
 */
export function readHistoryRows(rows: readonly Row[]): Promise<readonly AdjustmentEntry[]> {
  return readEach(rows, ({ entry }) => readEntry(parse(entry), () => {}));
}

/**
 * Reads the rows of `adjustment_processes_1`.
 * @throws TypeError, SyntaxError
 */
export function readInstanceRows(rows: readonly Row[]): readonly AdjustmentInstance[] {
  return rows.map(({ name, age, version, nonce }) => ({
    name: textOf(parse(name)),
    head: version === null ? undefined : headOf(version, nonce),
    ageMs: integerOf(age),
  }));
}

/** @param nonce a JSON text */
function headOf(version: unknown, nonce: unknown): Head {
  return { version: integerOf(version), nonce: textOf(parse(nonce)) };
}

/** @param value digits, since clients return large integers as text */
function integerOf(value: unknown): number {
  const number = value === '' || value === null ? Number.NaN : Number(value);
  if (!Number.isSafeInteger(number)) throw unexpected(value);
  return number;
}

function parse(json: unknown): unknown {
  return JSON.parse(textOf(json));
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw unexpected(value);
  return value;
}

function unexpected(value: unknown): TypeError {
  return new TypeError(`unexpected row of PostgreSQL about adjustments: ${JSON.stringify(value)?.slice(0, 200)}`);
}
