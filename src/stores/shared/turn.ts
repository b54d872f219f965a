import type { Decision } from '../../core/decision.ts';
import type { Plan } from '../../core/plan.ts';

/** Requests for one decision each, alike in everything, that follow one another. */
export interface Check {
  /** Names of the records that it touches, the (account, route)'s first. */
  readonly keys: readonly string[];
  readonly account: string;
  readonly route: string;
  readonly waiting: { resolve(decision: Decision): void; reject(error: unknown): void }[];
}

/** Checks of one plan and one cost, which travel as one call. */
export interface Group {
  readonly plan: Plan;
  readonly cost: number;
  readonly checks: Check[];
  /** Place among the groups of its turn. */
  readonly place: number;
}

/** What a check says. */
export type Wanted = Pick<Check, 'keys' | 'account' | 'route'> & Pick<Group, 'plan' | 'cost'>;

/** Where a check stands. */
interface Place {
  readonly check: Check;
  readonly group: Group;
}

/** Options of {@link Turn}. */
export interface TurnOptions {
  /** A cluster runs a script on keys of one slot only: then a group is of one account. */
  readonly oneAccountAGroup: boolean;
  /** Gets the groups of a turn in their order, at its end. */
  readonly send: (groups: readonly Group[]) => void;
}

/** Most records of one call: the server does nothing else until it is done, some 4 µs for each. */
const MOST_CHECKS = 32;
/** Fewer are not worth a call of their own. */
const FEW_CHECKS = 4;

/**
 * Collects the checks of one turn of the event loop. Those of one plan and cost travel together, those of one record as a number. Whatever
 * touches the same counters keeps the order in which it came, so that it is decided as if each had been sent by itself.
 */
export class Turn {
  readonly #options: TurnOptions;
  #groups: Group[] = [];
  /** The last group of each kind, which more may join. */
  #open = new Map<Plan, Map<string, Group>>();
  /** The last check that touches each record, and its group. */
  #last = new Map<string, Place>();

  constructor(options: TurnOptions) {
    this.#options = options;
  }

  /** Resolves when the check has been decided. */
  add({ keys, account, route, plan, cost }: Wanted): Promise<Decision> {
    if (this.#groups.length === 0) setImmediate(() => this.#end());
    let last: Place | undefined;
    let from = 0;
    let joins = true;
    for (const key of keys) {
      const ofKey = this.#last.get(key);
      joins &&= ofKey !== undefined && (last === undefined || last === ofKey);
      last = ofKey;
      from = Math.max(from, ofKey?.group.place ?? 0);
    }
    if (joins && last?.check.keys[0] === keys[0] && last?.group.plan === plan && last.group.cost === cost) {
      return join(last.check);
    }
    const group = this.#groupFor(account, plan, cost, from);
    const check: Check = { keys, account, route, waiting: [] };
    group.checks.push(check);
    const place = { check, group };
    for (const key of keys) this.#last.set(key, place);
    return join(check);
  }

  /** @param from the group may stand at this place or behind it */
  #groupFor(account: string, plan: Plan, cost: number, from: number): Group {
    let ofPlan = this.#open.get(plan);
    if (ofPlan === undefined) {
      ofPlan = new Map();
      this.#open.set(plan, ofPlan);
    }
    const kind = this.#options.oneAccountAGroup ? `${cost}:${account}` : String(cost);
    let group = ofPlan.get(kind);
    if (group === undefined || group.place < from) {
      group = { plan, cost, checks: [], place: this.#groups.length };
      this.#groups.push(group);
      ofPlan.set(kind, group);
    }
    return group;
  }

  #end(): void {
    const groups = this.#groups;
    this.#groups = [];
    this.#open = new Map();
    this.#last = new Map();
    this.#options.send(groups.flatMap(split));
  }
}

/**
 * In calls of a quarter of its checks each, within bounds: while the server decides some, this process deals out others. In one call each side would
 * wait for the other, in many the calls themselves would cost too much.
 */
function split(group: Group): Group[] {
  const { checks } = group;
  const size = Math.max(FEW_CHECKS, Math.min(MOST_CHECKS, Math.ceil(checks.length / 4)));
  if (checks.length <= size) return [group];
  const calls: Group[] = [];
  for (let from = 0; from < checks.length; from += size) {
    calls.push({ ...group, checks: checks.slice(from, from + size) });
  }
  return calls;
}

function join({ waiting }: Check): Promise<Decision> {
  return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
}
