import { type ClaimRecord, unexpired } from '../../core/claim.ts';
import type { ClaimId, ClaimPage, ClaimView, ListedClaim } from '../../core/ports.ts';
import { wrongCursor } from '../shared/claim-cursor.ts';
import type { ClaimTable } from './claim-table.ts';
import type { ClaimEntry } from './scope-claims.ts';

const CURSOR = /^([\w-]+)\.(\d{1,9})\.(\d{1,16})$/;
const encoder = /* @__PURE__ */ new TextEncoder();

/** A record as an operator sees it. */
export function viewOf(record: ClaimRecord, now: number): ClaimView {
  const { leaseUntil, keptUntil, ...rest } = record;
  const leaseMs = record.state === 'in_progress' ? Math.max(0, leaseUntil - now) : 0;
  return { ...rest, leaseMs, keptMs: Math.max(0, keptUntil - now) };
}

/**
 * Returns a page of the claims, in the order in which their keys were added, part by part of the table. A cursor has
 * the last place that was looked at: a place stays valid, whatever is added or deleted.
 * @param process tells the table from one of another process, whose places are others: its cursors begin anew
 * @throws OptionError for a cursor that no table makes
 */
export function listClaims(
  table: ClaimTable,
  process: string,
  cursor: string | undefined,
  count: number,
  now: number,
): ClaimPage {
  let { part, place } = read(cursor, process);
  const claims: ListedClaim[] = [];
  let looked = 0;
  for (; part < table.parts; part++, place = 0) {
    for (const claim of table.entriesOf(part)) {
      if (claim.place <= place) continue;
      if (looked === count) return { claims, looked, next: `${process}.${part}.${place}` };
      looked++;
      place = claim.place;
      if (unexpired(claim.record, now) !== undefined) claims.push(listed(claim, now));
    }
  }
  return { claims, looked, next: undefined };
}

function read(cursor: string | undefined, process: string): { readonly part: number; readonly place: number } {
  const start = { part: 0, place: 0 };
  if (cursor === undefined) return start;
  const [, madeBy, part, place] = CURSOR.exec(cursor) ?? [];
  if (madeBy === undefined) throw wrongCursor(cursor);
  return madeBy === process ? { part: Number(part), place: Number(place) } : start;
}

/** The scope and the key of a claim. */
export function idOf({ name, scope }: ClaimEntry): ClaimId {
  // The name is the length of the scope, a colon, the scope and the key.
  return { scope: scope.name, key: name.slice(name.indexOf(':') + 1 + scope.name.length) };
}

function listed(claim: ClaimEntry, now: number): ListedClaim {
  const { owner: _, fingerprint: _fingerprint, result, ...view } = viewOf(claim.record, now);
  return {
    ...view,
    ...idOf(claim),
    status: result?.status,
    valueBytes: result?.value === undefined ? undefined : encoder.encode(result.value).length,
  };
}
