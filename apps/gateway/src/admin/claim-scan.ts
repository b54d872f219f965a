import { isHeadgateError } from 'headgate';
import type { ClaimPage, ClaimStore, ListedClaim } from 'headgate/stores';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import { cursorOf, type PageRequest, readCursor, wrongCursor } from './paging.ts';

/** The operator's names for the states of a claim. */
export const CLAIM_STATES = ['free', 'in_progress', 'completed', 'orphan'] as const;
type State = (typeof CLAIM_STATES)[number];

/** A claim as the Admin API shows it. */
export interface ShownClaim {
  readonly application: string;
  readonly key: string;
  readonly state: State;
  readonly generation: number;
  readonly dispatched: boolean;
  readonly inherited: boolean;
  readonly leaseMs: number;
  readonly keptMs: number;
  readonly status: string | null;
  readonly valueBytes: number | null;
}

const MAX_LOOKED = 1_000;
/** Calls of the store per request. */
const MAX_CALLS = 10;
/** No store makes a longer one. */
const CURSOR = /^[\x20-\x7e]{1,6000}$/;

const CANNOT_LIST = refuse(
  409,
  'errors/conflict',
  'The store of this gateway cannot list claims. Look a claim up by its key with GET /v1/claims, or see the orphans that ' +
    'retries ran into with GET /v1/claims/orphans.',
);

/**
 * Looks at claims until `limit` of them are in the state.
 * @throws InputError for a cursor that the store did not make, and the store's errors
 */
export async function scanClaims(
  store: ClaimStore,
  { state, limit, cursor }: PageRequest & { readonly state?: State | undefined },
): Promise<{ readonly claims: ShownClaim[]; readonly looked: number; readonly next: string | null } | Refusal> {
  const list = store.list?.bind(store);
  if (list === undefined) return CANNOT_LIST;
  let place = cursor === undefined ? undefined : readCursor(cursor, CURSOR);
  const claims: ShownClaim[] = [];
  let looked = 0;
  for (let calls = 0, asked = 0; calls < MAX_CALLS && asked < MAX_LOOKED && claims.length < limit; calls++) {
    // A page cannot be divided later, so no more keys are looked at than there is room for claims.
    const count = Math.min(limit - claims.length, MAX_LOOKED - asked);
    asked += count;
    const page = await pageOf(list, place, count);
    looked += page.looked;
    const shown = page.claims.map(shownClaim);
    claims.push(...shown.filter((claim) => state === undefined || claim.state === state));
    place = page.next;
    if (place === undefined) break;
  }
  return { claims, looked, next: place === undefined ? null : cursorOf(place) };
}

async function pageOf(
  list: NonNullable<ClaimStore['list']>,
  place: string | undefined,
  count: number,
): Promise<ClaimPage> {
  try {
    return await list(place, count);
  } catch (error) {
    throw isHeadgateError(error, 'invalid_option') ? wrongCursor() : error;
  }
}

export function shownClaim(claim: ListedClaim): ShownClaim {
  const { scope, key, state, generation, dispatched, inherited, leaseMs, keptMs, status, valueBytes } = claim;
  const isOrphan = state === 'in_progress' && dispatched && leaseMs === 0;
  return {
    application: scope,
    key,
    state: isOrphan ? 'orphan' : state,
    generation,
    dispatched,
    inherited,
    leaseMs,
    keptMs,
    status: status ?? null,
    valueBytes: valueBytes ?? null,
  };
}
