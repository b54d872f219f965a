import { inSlices } from '../../base/slices.ts';
import type {
  AdjustedLimit,
  Adjustment,
  AdjustmentEntry,
  AdjustmentState,
  AdjustTarget,
  Head,
} from '../../core/adjustment.ts';
import { layerOf } from '../../core/adjustment.ts';
import { type Limit, parseLimit } from '../../core/limit.ts';

type Fields = Record<string, unknown>;

/**
 * Reads a store's JSON. It is untrusted: a limit must not be guessed.
 * @throws TypeError, LimitError, OptionError
 */
export async function readState(value: unknown): Promise<AdjustmentState> {
  const { head, adjustments, recent } = fieldsOf(value);
  return {
    head: readHead(head),
    adjustments: await readEach(listOf(adjustments), readAdjustment),
    recent: await readEach(listOf(recent), (each) => readEntry(each)),
  };
}

/** @throws TypeError, LimitError, OptionError */
export function readAdjustment(value: unknown): Adjustment {
  const fields = fieldsOf(value);
  const windows = readWindows(fields.windows);
  if (windows === undefined) throw unexpected(value);
  return {
    target: readTarget(fields.target),
    windows,
    version: integerOf(fields.version),
    ...readAuthor(fields),
    until: optionally(integerOf, fields.until),
  };
}

/**
 * @param onUnreadable is called for each limit that cannot be read, which is left out then. By default it is an error
 * @throws TypeError, LimitError, OptionError
 */
export function readEntry(value: unknown, onUnreadable?: () => void): AdjustmentEntry {
  const fields = fieldsOf(value);
  const { source } = fields;
  if (source !== 'change' && source !== 'expiry') throw unexpected(value);
  const limits = listOf(fields.limits).flatMap((each) => {
    try {
      return [readLimit(each)];
    } catch (error) {
      if (onUnreadable === undefined) throw error;
      onUnreadable();
      return [];
    }
  });
  return { ...readHead(fields), ...readAuthor(fields), source, limits };
}

/** Reads a list, which may be long, in slices. */
export async function readEach<V, T>(values: readonly V[], read: (value: V) => T): Promise<readonly T[]> {
  const found: T[] = [];
  await inSlices(values, (value) => found.push(read(value)));
  return found;
}

function readHead(value: unknown): Head {
  const { version, nonce } = fieldsOf(value);
  return { version: integerOf(version), nonce: textOf(nonce) };
}

function readLimit(value: unknown): AdjustedLimit {
  const { target, from, to, until } = fieldsOf(value);
  return {
    target: readTarget(target),
    from: readWindows(from),
    to: readWindows(to),
    until: optionally(integerOf, until),
  };
}

function readAuthor({ at, by, reason }: Fields): Pick<Adjustment, 'at' | 'by' | 'reason'> {
  return { at: integerOf(at), by: textOf(by), reason: optionally(textOf, reason) };
}

function readTarget(value: unknown): AdjustTarget {
  const target = fieldsOf(value);
  for (const name of Object.values(target)) textOf(name);
  layerOf(target);
  return target;
}

function readWindows(value: unknown): Limit | undefined {
  return optionally((windows) => parseLimit(windows as Limit, 'adjustment'), value);
}

function optionally<T>(read: (value: unknown) => T, value: unknown): T | undefined {
  return value === undefined ? undefined : read(value);
}

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null) throw unexpected(value);
  return value as Fields;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw unexpected(value);
  return value;
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw unexpected(value);
  return value;
}

function integerOf(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw unexpected(value);
  return value as number;
}

function unexpected(value: unknown): TypeError {
  return new TypeError(`unexpected value among adjustments: ${JSON.stringify(value)?.slice(0, 200)}`);
}
