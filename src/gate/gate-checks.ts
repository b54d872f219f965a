import type { Decision } from '../core/decision.ts';
import type { MisuseLog } from '../core/misuse.ts';
import type { Limiter } from '../limits/ports.ts';
import type { SkippedEvent } from './events.ts';
import type { GatePassage } from './passage.ts';

/** So many requests without an account, and none with one, are probably a mistake. */
const REQUESTS = 100;
/** So many requests, of which no limit applied to any, are probably one too. */
const SKIPPED = 1_000;

/** Looks for signs that a gate is mounted by mistake. A gate shares them with the gates that `with()` makes of it. */
export class GateChecks {
  readonly #misuse: MisuseLog;
  #withoutAccount = 0;
  #hasAccount = false;
  /** Whether a request had a route, and was not allowed without a limit. */
  #isLimited = false;
  #allowed = 0;
  #exempt = 0;
  #isTwice = false;

  constructor(misuse: MisuseLog) {
    this.#misuse = misuse;
  }

  /** Call it with the account of each request with a route. */
  resolved(account: string | undefined): void {
    if (this.#hasAccount) return;
    this.#isLimited = true;
    this.#hasAccount = account !== undefined;
    if (this.#hasAccount || ++this.#withoutAccount < REQUESTS) return;
    const reason = `\`account\` was undefined for all of the first ${REQUESTS} requests`;
    this.#misuse.warn('HG_NO_ACCOUNT', `${reason}: does it read the right field, and is that set before the gate?`);
  }

  /** Call it with each request that passes without a decision. */
  skipped(reason: SkippedEvent['reason']): void {
    if (this.#isLimited) return;
    if (reason === 'allowed') this.#allowed++;
    else this.#exempt++;
    if (this.#allowed + this.#exempt < SKIPPED) return;
    this.#isLimited = true;
    const reasons = `\`allow\` returned true for ${this.#allowed} of them, and \`route\` undefined for ${this.#exempt}`;
    this.#misuse.warn('HG_NOTHING_LIMITED', `No limit applied to the first ${SKIPPED} requests: ${reasons}.`);
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
