import type { AdjustmentEntry, Head } from '../../core/adjustment.ts';
import type { AdjustmentReply } from '../../core/lineage.ts';
import type { AdjustmentInstance } from '../../core/ports.ts';
import { readAdjustment, readEach, readEntry } from '../shared/stored-adjustments.ts';

const LISTED_MS = 10_000;

/**
 * Reads the output of `adjustments-read.lua`. It is untrusted: anything that headgate does not write is an error. Only a
 * limit that cannot be read is left out and counted, because a later version may have written it, and the others apply.
 * @throws TypeError, OptionError
 */
export function readAdjustmentReply(reply: unknown): AdjustmentReply {
  const [time, kind, entries, head, adjustments] = listOf(reply);
  const now = integerOf(textOf(time));
  let unreadable: number | undefined;
  const count = (): void => {
    unreadable = (unreadable ?? 0) + 1;
  };
  switch (textOf(kind)) {
    case 'none':
      return { kind: 'none', now };
    case 'same':
      return { kind: 'same', now };
    case 'changes':
      return { kind: 'changes', now, entries: readEntries(entries, count), unreadable };
    case 'all': {
      const state = {
        head: readHead(textOf(head)),
        adjustments: readEach(listOf(adjustments), (each) => readAdjustment(parse(each)), count),
        // Their limits are those of the past.
        recent: readEntries(entries, () => {}),
      };
      return { kind: 'all', now, state, unreadable };
    }
    default:
      throw unexpected(kind);
  }
}

/** Reads the output of `adjustments-list.lua` for entries. */
export function readHistory(reply: unknown): readonly AdjustmentEntry[] {
  return readEntries(listOf(reply).slice(1), () => {});
}

/** Reads the output of `adjustments-list.lua` for processes. */
export function readInstances(reply: unknown): readonly AdjustmentInstance[] {
  const [time, ...values] = listOf(reply).map(textOf);
  const now = integerOf(time as string);
  const instances: AdjustmentInstance[] = [];
  for (let i = 0; i + 1 < values.length; i += 2) {
    const [, heardAt, head] = /^(\d+):(.*)$/s.exec(values[i + 1] as string) ?? [];
    if (heardAt === undefined || head === undefined) throw unexpected(values[i + 1]);
    const ageMs = Math.max(0, now - Number(heardAt));
    const known = head === ':' ? undefined : readHead(head);
    if (ageMs <= LISTED_MS) instances.push({ name: values[i] as string, head: known, ageMs });
  }
  return instances;
}

/**
 * Reads the output of `adjustments-list.lua` for details.
 * @param count how many were asked for
 */
export function readDetails(reply: unknown, count: number): readonly (string | undefined)[] {
  const [, ...values] = listOf(reply);
  if (values.length !== count) throw unexpected(reply);
  return values.map((value) => (value === null ? undefined : textOf(value)));
}

/** `17:k3v9q2`, or '' without a history. */
export function headText(head: Head | undefined): string {
  return head === undefined ? '' : `${head.version}:${head.nonce}`;
}

function readEntries(reply: unknown, onUnreadable: () => void): readonly AdjustmentEntry[] {
  return listOf(reply).map((json) => readEntry(parse(json), onUnreadable));
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
  return new TextDecoder().decode(value);
}

function unexpected(value: unknown): TypeError {
  return new TypeError(`unexpected reply of Redis about adjustments: ${JSON.stringify(value)?.slice(0, 200)}`);
}
