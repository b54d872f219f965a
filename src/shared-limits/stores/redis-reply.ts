import { inSlices } from '../../base/slices.ts';
import type { Adjustment, AdjustmentEntry, Head } from '../../core/adjustment.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance } from '../ports.ts';
import { readAdjustment, readEach, readEntry } from './json.ts';

const LISTED_MS = 10_000;
const UTF8 = /* @__PURE__ */ new TextDecoder();

/** A part of the adjustments. */
export interface AdjustmentPart {
  /** Where the next part begins; undefined after the last one. */
  readonly next: string | undefined;
  /** By `targetKey`. Undefined if this version cannot read the adjustment. */
  readonly adjustments: ReadonlyMap<string, Adjustment | undefined>;
}

/** How many adjustments there are. */
interface Sized {
  readonly size: number;
}

/** The script's reply. `all` contains only the first part of the adjustments. */
export type ReadReply =
  | Extract<AdjustmentReply, { readonly kind: 'none' }>
  | (Extract<AdjustmentReply, { readonly kind: 'same' | 'changes' }> & Sized)
  | {
      readonly kind: 'all';
      readonly now: number;
      readonly head: Head;
      readonly recent: readonly AdjustmentEntry[];
      readonly part: AdjustmentPart;
    };

/**
 * Reads the output of `lua/read.lua`. It is untrusted: anything that headgate does not write is an error. Only a
 * limit that cannot be read is left out and counted, because a later version may have written it, and the others apply.
 * @throws TypeError, OptionError
 */
export async function readReadReply(reply: unknown): Promise<ReadReply> {
  const [time, kind, ...rest] = listOf(reply);
  const now = integerOf(textOf(time));
  switch (textOf(kind)) {
    case 'none':
      return { kind: 'none', now };
    case 'same':
      return { kind: 'same', now, size: Number(rest[0]) };
    case 'changes': {
      let unreadable: number | undefined;
      const entries = await readEntries(rest[0], () => {
        unreadable = (unreadable ?? 0) + 1;
      });
      return { kind: 'changes', now, entries, unreadable, size: Number(rest[1]) };
    }
    case 'all': {
      const [entries, head, next, fields] = rest;
      const part = await readPart(next, fields);
      // Their limits belong to the past.
      const recent = await readEntries(entries, () => {});
      return { kind: 'all', now, head: readHead(textOf(head)), recent, part };
    }
    default:
      throw unexpected(kind);
  }
}

/** Reads the output of `lua/read.lua` for one part, as {@link readReadReply} does. */
export function readPartReply(reply: unknown): Promise<AdjustmentPart> {
  const [, , next, fields] = listOf(reply);
  return readPart(next, fields);
}

/** Reads the output of `lua/instances.lua` for entries. */
export async function readHistory(reply: unknown): Promise<readonly AdjustmentEntry[]> {
  return readEntries(listOf(reply).slice(1), () => {});
}

/**
 * Reads the output of `lua/instances.lua` for processes. Rows that headgate did not write are left out: one such row
 * must not hide all processes.
 */
export function readInstances(reply: unknown): readonly AdjustmentInstance[] {
  const [time, ...values] = listOf(reply).map(textOf);
  const now = integerOf(time as string);
  const instances: AdjustmentInstance[] = [];
  for (let i = 0; i + 1 < values.length; i += 2) {
    const [, heardAt, , version, nonce] = /^(\d{1,15}):(:|(\d{1,15}):(.+))$/s.exec(values[i + 1] as string) ?? [];
    if (heardAt === undefined) continue;
    const ageMs = Math.max(0, now - Number(heardAt));
    const head = version === undefined || nonce === undefined ? undefined : { version: Number(version), nonce };
    if (ageMs <= LISTED_MS) instances.push({ name: values[i] as string, head, ageMs });
  }
  return instances;
}

/** `17:k3v9q2`, or '' without a history. */
export function headText(head: Head | undefined): string {
  return head === undefined ? '' : `${head.version}:${head.nonce}`;
}

function readEntries(reply: unknown, onUnreadable: () => void): Promise<readonly AdjustmentEntry[]> {
  return readEach(listOf(reply), (json) => readEntry(parse(json), onUnreadable));
}

async function readPart(next: unknown, reply: unknown): Promise<AdjustmentPart> {
  const fields = listOf(reply);
  const adjustments = new Map<string, Adjustment | undefined>();
  await inSlices(fields.keys(), (i) => {
    if (i % 2 === 1) adjustments.set(textOf(fields[i - 1]), readable(fields[i]));
  });
  return { next: textOf(next) === '0' ? undefined : textOf(next), adjustments };
}

function readable(json: unknown): Adjustment | undefined {
  try {
    return readAdjustment(parse(json));
  } catch {
    return undefined;
  }
}

function readHead(text: string): Head {
  const [, version, nonce] = /^(\d+):(.*)$/s.exec(text) ?? [];
  if (version === undefined || nonce === undefined) throw unexpected(text);
  return { version: integerOf(version), nonce };
}

function integerOf(text: string): number {
  const number = text === '' ? Number.NaN : Number(text);
  if (!Number.isSafeInteger(number)) throw unexpected(text);
  return number;
}

function parse(json: unknown): unknown {
  return JSON.parse(textOf(json));
}

function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw unexpected(reply);
  return reply;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!(value instanceof Uint8Array)) throw unexpected(value);
  return UTF8.decode(value);
}

function unexpected(value: unknown): TypeError {
  return new TypeError(`unexpected reply of Redis about adjustments: ${JSON.stringify(value)?.slice(0, 200)}`);
}
