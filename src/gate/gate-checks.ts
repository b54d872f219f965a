import type { Decision } from '../core/decision.ts';
import type { MisuseLog } from '../core/misuse.ts';
import type { Limiter } from '../limits/ports.ts';
import type { GatePassage } from './passage.ts';

/** So many requests without an account, and none with one, are probably a mistake. */
const REQUESTS = 100;
/** So many first requests, of which a limit applied to almost none, are probably one too. */
const FIRST = 1_000;
const FEW = 10;
/** So many responses, errors among them, that all cost nothing are probably one as well. */
const REFUNDED = 100;
/** Why a request is not limited. */
const WHY_NOT = {
  allowed: '`allow` returned true',
  not_limited: '`route` was undefined',
  no_account: '`account` was undefined',
  cached: '`cached` returned true',
} as const;

export type WhyNotLimited = keyof typeof WHY_NOT;

/** Looks for signs that a gate is mounted by mistake. A gate shares them with the gates that `with()` makes of it. */
export class GateChecks {
  readonly #misuse: MisuseLog;
  #withoutAccount = 0;
  #hasAccount = false;
  #requests = 0;
  readonly #skipped = { allowed: 0, not_limited: 0, no_account: 0, cached: 0 };
  /** Responses that cost nothing; NaN once a response cost something. */
  #refunded = 0;
  #hasRefundedError = false;
  #isTwice = false;

  constructor(misuse: MisuseLog) {
    this.#misuse = misuse;
  }

  /** Call it with the account of each request with a route. */
  resolved(account: string | undefined): void {
    if (this.#hasAccount) return;
    this.#hasAccount = account !== undefined;
    if (this.#hasAccount || ++this.#withoutAccount < REQUESTS) return;
    const reason = `\`account\` was undefined for all of the first ${REQUESTS} requests`;
    this.#misuse.warn('HG_NO_ACCOUNT', `${reason}: does it read the right field, and is that set before the gate?`);
  }

  /** Call it with each request that is decided, or passes without a decision for a reason. */
  passed(whyNot?: WhyNotLimited): void {
    if (this.#requests >= FIRST) return;
    this.#requests++;
    if (whyNot !== undefined) this.#skipped[whyNot]++;
    if (this.#requests < FIRST) return;
    const reasons = Object.entries(this.#skipped).filter(([, count]) => count > 0);
    const skipped = reasons.reduce((sum, [, count]) => sum + count, 0);
    if (skipped < FIRST - FEW) return;
    const shown = reasons.map(([reason, count]) => `${WHY_NOT[reason as WhyNotLimited]} for ${count}`);
    this.#misuse.warn(
      'HG_NOTHING_LIMITED',
      `No limit applied to ${skipped} of the first ${FIRST} requests: ${shown.join(', ')}.`,
    );
  }

  /** Call it with what `finalCost` returned for a response. */
  finalCost(cost: unknown, status: number): void {
    if (cost !== 0) this.#refunded = Number.NaN;
    this.#hasRefundedError ||= status >= 400;
    // A gate that only counts errors refunds any number of other responses.
    if (!(++this.#refunded >= REFUNDED && this.#hasRefundedError)) return;
    this.#refunded = Number.NaN;
    const reason = '`finalCost` returned 0 for every response so far, also for errors';
    this.#misuse.warn('HG_NOTHING_LIMITED', `${reason}: does it read \`status\`?`, 'finalCost');
  }

  /** Call it with each decision of a request that another gate let through. */
  decidedBehind(outer: GatePassage, decision: Decision | undefined, limiter: Limiter): void {
    if (this.#isTwice || decision === undefined) return;
    this.#isTwice = outer.hasCharged(decision, limiter);
    if (!this.#isTwice) return;
    const reason = 'One request was counted twice for one account';
    this.#misuse.warn('HG_GATE_TWICE', `${reason}: mount the gate for the application or in the route, not both.`);
  }
}
