import type { Clock } from '../../core/clock.ts';
import type { ClaimPage, ListedClaim } from '../../core/ports.ts';
import { wrongCursor } from '../shared/claim-cursor.ts';
import { readListed } from './claim-reply.ts';
import type { Commands } from './client.ts';
import { type ServerState, serverState } from './cluster-state.ts';
import { claimPattern, parseClaimKey } from './keys.ts';
import listSource from './lua/claims-list.lua';
import { createScript, scriptTime } from './script.ts';
import { ALL_SLOTS, NO_SLOTS, SlotSet } from './slot-set.ts';

const script = /* @__PURE__ */ createScript(listSource);
/** Claims that one script reads: a server serves nothing else meanwhile. */
const CLAIMS_PER_CALL = 100;

const RETRY_MS = 100;

/** The point that a scan reached. */
export interface ScanPlace {
  /** Run and address of the server that is being scanned; '' before a server is chosen. */
  readonly run: string;
  readonly address: string;
  /** The result of its last SCAN. */
  readonly position: string;
  /** The slots that are scanned with this server. */
  readonly now: SlotSet;
  /** The slots that come after them. */
  readonly later: SlotSet;
}

const START: ScanPlace = { run: '', address: '', position: '0', now: NO_SLOTS, later: ALL_SLOTS };

/**
 * Scans the claims of every server, one server after the other. A place is all that a scan knows, so each page can be
 * asked of another process.
 *
 * A scan goes by slots, not by servers, so that a failover or a resharding loses none. A slot is done when a server has
 * been scanned that had it at the first and at the last page. Slots that move meanwhile are scanned again where they
 * are.
 */
export class ClaimScan {
  readonly #commands: Commands;
  readonly #prefix: string;
  readonly #clock: Clock | undefined;

  constructor(commands: Commands, prefix: string, clock: Clock | undefined) {
    this.#commands = commands;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  async page(place: ScanPlace = START, count: number): Promise<ClaimPage> {
    try {
      return await this.#page(place, count);
    } catch (error) {
      if (!this.#commands.isCluster) throw error;
      // After a failover the client closes connections, and only then knows the new master.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      return this.#page(place, count);
    }
  }

  async #page(place: ScanPlace, count: number): Promise<ClaimPage> {
    const found = (await this.#resume(place)) ?? (await this.#choose(place.now.or(place.later)));
    if (found === undefined) return { claims: [], looked: 0, next: undefined };
    const { node, run, slots, position: from, now, later } = found;
    const { position, keys } = await node.scan(from, claimPattern(this.#prefix), count);
    const page = await this.#read(keys);
    if (position !== '0') return { ...page, next: writePlace({ run, address: node.address, position, now, later }) };
    const left = later.or(now.without(slots));
    return { ...page, next: left.isEmpty ? undefined : writePlace({ ...START, later: left }) };
  }

  /** The server of a place, if its positions are still valid. */
  async #resume(place: ScanPlace): Promise<(ServerState & ScanPlace) | undefined> {
    const { run, address } = place;
    const node = run === '' ? undefined : (await this.#commands.nodes()).find((each) => each.address === address);
    if (node === undefined) return undefined;
    const state = await serverState(this.#commands, node).catch(() => undefined);
    return state?.run === run ? { ...place, ...state } : undefined;
  }

  /**
   * Chooses a server with slots that are left. Servers that export slots come first: keys only move away from them,
   * so none of their keys is on another server that was scanned before.
   * @returns undefined if there is none
   * @throws the error of a server, if no other server can be scanned now
   */
  async #choose(left: SlotSet): Promise<(ServerState & ScanPlace) | undefined> {
    const nodes = await this.#commands.nodes();
    const replies = await Promise.allSettled(nodes.map((node) => serverState(this.#commands, node)));
    const states = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []));
    const candidates = states.filter(({ slots }) => !slots.and(left).isEmpty);
    const state = candidates.find(({ exported }) => !exported.isEmpty) ?? candidates[0];
    if (state !== undefined) {
      const now = left.and(state.slots);
      return { ...state, address: state.node.address, position: '0', now, later: left.without(now) };
    }
    for (const reply of replies) if (reply.status === 'rejected') throw reply.reason;
    // An exported slot that no server imports was scanned with the server that exports it.
    const missing = states.reduce((slots, { assigned }) => slots.or(assigned), NO_SLOTS).and(left);
    const exported = states.reduce((slots, each) => slots.or(each.exported), NO_SLOTS);
    if (states.length === 0 || !missing.without(exported).isEmpty)
      throw new Error('the client does not know the masters of all slots now');
    return undefined;
  }

  async #read(names: readonly string[]): Promise<Pick<ClaimPage, 'claims' | 'looked'>> {
    const { isCluster } = this.#commands;
    const known = names.flatMap((name) => {
      const id = parseClaimKey(this.#prefix, name);
      return id === undefined ? [] : [{ name, id }];
    });
    // A cluster refuses a script with keys of several slots.
    const size = isCluster ? 1 : CLAIMS_PER_CALL;
    const calls: Promise<(ListedClaim | undefined)[]>[] = [];
    for (let i = 0; i < known.length; i += size) {
      const some = known.slice(i, i + size);
      const keys = some.map(({ name }) => name);
      calls.push(
        script.run(this.#commands, keys, [scriptTime(this.#clock)]).then((reply) => {
          if (!Array.isArray(reply) || reply.length !== some.length) throw new TypeError('unexpected reply of Redis');
          return some.map(({ id }, at) => {
            const view = readListed(reply[at]);
            return view && { ...id, ...view };
          });
        }),
      );
    }
    const claims = (await Promise.all(calls)).flat().filter((claim) => claim !== undefined);
    return { claims, looked: known.length };
  }
}

const PLACE = /^(\w{0,64})\/([\w.:[\]%-]{0,300})\/(\d{1,20})\/([\w*.-]+)\/([\w*.-]+)$/;

function writePlace({ run, address, position, now, later }: ScanPlace): string {
  return [run, address, position, now, later].join('/');
}

/** Redis answers a larger one with an error. */
const LAST_POSITION = 2n ** 64n - 1n;

/** @throws OptionError for a text that no scan returned */
export function readPlace(cursor: string): ScanPlace {
  const [, run, address, position, nowText = '', laterText = ''] = PLACE.exec(cursor) ?? [];
  const now = SlotSet.parse(nowText);
  const later = SlotSet.parse(laterText);
  if (run === undefined || address === undefined || position === undefined || !now || !later) throw wrongCursor(cursor);
  if (BigInt(position) > LAST_POSITION) throw wrongCursor(cursor);
  return { run, address, position, now, later };
}
