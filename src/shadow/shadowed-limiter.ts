import type { AdjustTarget } from '../core/adjustment.ts';
import type { Block, BlockTarget } from '../core/block.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitInput } from '../core/limit.ts';
import type { ResetTarget } from '../core/ports.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Limiter, LimitRequest } from '../limits/limiter.ts';
import type { Subject } from '../limits/window-sets.ts';
import type { ShadowChecks } from './checks.ts';

/** A limiter whose calls a candidate hears of, after they have returned. */
export class ShadowedLimiter implements Limiter {
  readonly #limiter: Limiter;
  readonly #checks: () => ShadowChecks | undefined;

  /** @param checks those of the candidate of now; undefined without one */
  constructor(limiter: Limiter, checks: () => ShadowChecks | undefined) {
    this.#limiter = limiter;
    this.#checks = checks;
  }

  get synchronous(): boolean {
    return this.#limiter.synchronous;
  }

  consume(request: LimitRequest): Promise<Decision> {
    const checks = this.#checks();
    if (checks === undefined) return this.#limiter.consume(request);
    // Another promise in between would take the caller longer than all else that a shadow does.
    if (this.#limiter.synchronous) {
      try {
        return Promise.resolve(this.consumeSync(request));
      } catch (error) {
        return Promise.reject(error);
      }
    }
    const decided = this.#limiter.consume(request);
    const shadow = checks.prepare(request);
    if (shadow === undefined) return decided;
    // The caller gets this promise, so that a rejection that it does not handle stays unhandled.
    return decided.then((decision) => {
      checks.add(shadow, decision);
      return decision;
    });
  }

  consumeSync(request: LimitRequest): Decision {
    const decision = this.#limiter.consumeSync(request);
    const checks = this.#checks();
    checks?.add(checks.prepare(request), decision);
    return decision;
  }

  peek(subject: Subject): Promise<readonly WindowStatus[]> {
    return this.#limiter.peek(subject);
  }

  refund(decision: Decision): Promise<boolean> {
    return this.settle(decision, 0);
  }

  settle(decision: Decision, cost: number): Promise<boolean> {
    const settled = this.#limiter.settle(decision, cost);
    // The window of the candidate may still be active although that of the limiter is over.
    if (typeof decision?.takeCharge === 'function' && Number.isSafeInteger(cost) && cost >= 0)
      this.#checks()?.settle(decision, cost);
    return settled;
  }

  async reset(target: ResetTarget): Promise<void> {
    // The caller may change it meanwhile.
    const copy = Object.assign({}, target);
    await this.#limiter.reset(target);
    this.#checks()?.reset(copy);
  }

  block(target: BlockTarget, block: Block): Promise<void> {
    return this.#limiter.block(target, block);
  }

  unblock(target: BlockTarget): Promise<void> {
    return this.#limiter.unblock(target);
  }

  blocked(target: BlockTarget): Promise<Block | undefined> {
    return this.#limiter.blocked(target);
  }

  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    this.#limiter.adjust(target, windows);
  }

  windowSet(subject: Subject): WindowSet {
    return this.#limiter.windowSet(subject);
  }

  async close(): Promise<void> {
    this.#checks()?.close();
    await this.#limiter.close();
  }
}
