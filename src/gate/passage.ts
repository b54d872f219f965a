import { OptionError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { Decision } from '../core/decision.ts';
import type { Cost } from '../core/unit.ts';
import { hasSharedCount } from '../core/window-set.ts';
import type { Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import { NotDispatchedError } from '../idempotency/not-dispatched.ts';
import { refuse } from '../idempotency/note.ts';
import { RolledBackError } from '../idempotency/rolled-back.ts';
import type { Cooldown, CooldownReport } from '../limits/cooldown.ts';
import { fieldsOf, type ProviderResponse, type ReadField } from '../limits/cooldown-options.ts';
import { checkCosts } from '../limits/costs.ts';
import type { Limiter } from '../limits/ports.ts';
import type { GateEmitter } from './events.ts';
import type { GateOutcome, Passage, Settlement } from './gate.ts';
import { type GateOptions, isProviderAnswers, type ProviderAnswers } from './options.ts';
import type { CapturedResponse, ResponseRecording } from './recording.ts';

const NOT_ENDED = 'the response broke off, or is longer than maxKeptBytes and did not end by then';
const SUCCESS_AFTER_ABANDON = 'the handler called abandon(), and answered a success after it';
const NO_COOLDOWN = 'must be given to the gate: without it, nothing is paused';
const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});
const noField = (): undefined => undefined;

/** The passage of one request that the gate let through. */
export class GatePassage implements Passage {
  readonly kind = 'proceed';
  marks = NO_HEADERS;
  #state: 'open' | 'settled' | 'abandoned' = 'open';
  /** Settles when the claim is released. */
  #releasing: Promise<Reply | undefined> | undefined;
  /** The passages of this request through several gates, in their order; undefined if there is only this one. */
  #stack: GatePassage[] | undefined;
  /** Another gate rejected the request: the response shows that window. */
  #isHidden = false;
  /** The handler reported the provider's answer. */
  #isReported = false;
  recording: ResponseRecording | undefined;
  isRecorded = false;
  #releaseClaim: (() => Promise<Reply | undefined>) | undefined;
  #transaction: object | undefined;
  #dispatchClaim: ((note: unknown) => Promise<Reply | undefined>) | undefined;
  /** Resolves to the answer of a request whose effect must not happen. */
  #dispatching: Promise<Reply | undefined> | undefined;

  constructor(
    readonly decision: Decision | undefined,
    public headers: HeaderFields,
    readonly requestId: string,
    private readonly options: Pick<GateOptions<never>, 'limiter' | 'providerAnswers' | 'finalCost' | 'cooldown'>,
    private readonly events: GateEmitter,
    /** Looks for signs of a mistake. */
    private readonly checks?: { finalCost(cost: unknown, status: number): void } | undefined,
    private readonly pauses?: Cooldown | undefined,
  ) {}

  /**
   * Adds the claim of the request: `recording` completes it, `releaseClaim` releases it, and `fail` logs an error and
   * makes the answer. `dispatchClaim`, if the handler says when: it records the dispatch, or returns the answer of a
   * request whose effect must not happen. `transaction`, if the claim is made in one.
   */
  withClaim(
    recording: Omit<ResponseRecording, 'fail'>,
    releaseClaim: () => Promise<Reply | undefined>,
    fail: (error: Error) => Reply,
    dispatchClaim?: (note: unknown) => Promise<Reply | undefined>,
    transaction?: object,
  ): this {
    const { claim, maxBytes, storeBeforeSending } = recording;
    this.#transaction = transaction;
    const store = (response: CapturedResponse): Promise<Reply | undefined> => {
      const fault = transaction && this.#faultOf(response);
      if (fault !== undefined) {
        this.#releasing ??= releaseClaim();
        return this.#releasing.then((instead) => instead ?? fail(new RolledBackError(fault)));
      }
      // Nothing is stored for a claim that was released first.
      return this.#releasing ?? this.#store(recording, response);
    };
    this.recording = {
      claim,
      maxBytes,
      storeBeforeSending,
      store: (response) =>
        this.#dispatching?.catch(noField).then((instead) => instead ?? store(response)) ?? store(response),
      fail: async (error) => {
        const reply = fail(error);
        return (await this.abandon()) ?? reply;
      },
    };
    this.isRecorded = true;
    this.#releaseClaim = releaseClaim;
    this.#dispatchClaim = dispatchClaim;
    return this;
  }

  get transaction(): object | undefined {
    const owner = (this.#stack ?? [this]).find((one) => one.#transaction !== undefined);
    return owner === undefined ? undefined : owner.#transaction;
  }

  /** Why a response must not be sent, because its transaction is or will be rolled back; undefined if it may. */
  #faultOf({ status, isBroken }: CapturedResponse): string | undefined {
    if (isBroken && status < 500) return NOT_ENDED;
    return this.#state === 'abandoned' && status < 400 ? SUCCESS_AFTER_ABANDON : undefined;
  }

  async dispatch(note?: unknown): Promise<void> {
    const owner = (this.#stack ?? [this]).find((one) => one.#dispatchClaim !== undefined);
    if (owner === undefined) {
      if (note !== undefined) throw refuse("needs a request with an idempotency key and dispatch: 'explicit'");
      return;
    }
    owner.#dispatching ??= owner.#dispatch(note);
    if ((await owner.#dispatching) !== undefined)
      throw new NotDispatchedError(
        'another attempt owns the idempotency key, or the store could not record the dispatch',
      );
  }

  noteOutcome(note: unknown): void {
    const claim = (this.#stack ?? [this]).find((one) => one.recording !== undefined)?.recording?.claim;
    if (claim === undefined) throw refuse('needs a request with an idempotency key that is not bypassed');
    claim.noteOutcome(note);
  }

  async leave(): Promise<void> {
    const owner = (this.#stack ?? [this]).find((one) => one.recording !== undefined);
    if (owner === undefined) return;
    owner.#releasing ??= owner.recording?.claim?.leave().then(noField);
    await owner.#releasing;
  }

  async #dispatch(note: unknown): Promise<Reply | undefined> {
    let instead: Reply | undefined;
    try {
      instead = await this.#dispatchClaim?.(note);
    } catch (error) {
      // The note was refused, and nothing was dispatched.
      this.#dispatching = undefined;
      throw error;
    }
    // Nothing was executed.
    if (instead !== undefined) void this.abandon();
    return instead;
  }

  /** A handler that answers an error before it dispatched did nothing: its key is released. */
  #store(recording: Pick<ResponseRecording, 'store'>, response: CapturedResponse): Promise<Reply | undefined> {
    const didNothing = this.#dispatchClaim !== undefined && this.#dispatching === undefined && response.status >= 400;
    return didNothing ? (this.#releaseClaim as () => Promise<Reply | undefined>)() : recording.store(response);
  }

  get hasFinalCost(): boolean {
    return this.options.finalCost !== undefined;
  }

  /** Adds headers that every response carries. */
  withMarks(marks: HeaderFields): this {
    this.marks = marks;
    this.headers = { ...this.headers, ...marks };
    return this;
  }

  /** Says that this gate is behind another one: only one of the two shows its window. */
  behind(outer: GatePassage): this {
    outer.#stack ??= [outer];
    outer.#stack.push(this);
    this.#stack = outer.#stack;
    this.isRecorded ||= outer.isRecorded;
    this.#isHidden ||= outer.#isHidden;
    return this;
  }

  /** Another gate rejected the request: the response shows the fields of that gate, whatever its status. */
  hide(): void {
    for (const one of this.#stack ?? [this]) one.#isHidden = true;
  }

  /** Whether a gate of this request already counted it in the same counters: the limiter's, of this decision. */
  hasCharged({ account, route, windowSet }: Decision, limiter: Limiter): boolean {
    return (this.#stack ?? [this]).some(({ decision: one, options }) => {
      if (one?.account !== account || options.limiter !== limiter) return false;
      return one.route === route || (hasSharedCount(one.windowSet) && hasSharedCount(windowSet));
    });
  }

  settle(outcome: GateOutcome): Settlement {
    const { status, cached = false, fromGate = false, header = noField } = outcome;
    const isRefusal = status === 429 || this.pauses?.isRefusal(status, header);
    const provider = !fromGate && isRefusal ? this.#isProviders(outcome) : false;
    let cooling: Promise<unknown> | undefined;
    if (this.#state === 'open') {
      this.#state = 'settled';
      // Only of a refusal is it known whose it is. Any other answer came past the provider, and need not wait: until the
      // pause is ended, requests are rejected as before.
      if (!isRefusal) this.#reportOnce(outcome, this.#isPastProvider(outcome));
      else cooling = this.#reportOnce(outcome, provider !== false);
      if (cached) void this.#settleCharge(0);
      else if (!fromGate) this.#applyFinalCost(outcome);
      // The handler was not reached, so a retry must be able to run it (I6).
      if (fromGate) this.#releasing = this.#releaseClaim?.();
    }
    if (status !== 429) return { headers: this.#isShown() ? this.headers : this.marks, stripRateLimit: false, cooling };
    if (provider === false) return { headers: this.marks, stripRateLimit: false };
    this.events.emit({ type: 'provider_rejected', requestId: this.requestId, decision: this.decision });
    return { headers: this.marks, stripRateLimit: provider !== 'pass', cooling };
  }

  abandon(): Promise<Reply | undefined> {
    if (this.#state === 'open') {
      this.#state = 'abandoned';
      this.#releasing = this.#abandon();
    }
    return this.#releasing ?? Promise.resolve(undefined);
  }

  /** Whether this passage is the one of its request with the least left; if two are equal, the first gate's (S6). */
  #isShown(): boolean {
    // A refunded charge is not shown.
    if (this.#isHidden || this.#state === 'abandoned') return false;
    if (this.#stack === undefined) return true;
    const least = Math.min(...this.#stack.map((one) => one.#left()));
    return this === this.#stack.find((one) => one.#left() === least);
  }

  /** The rest of the window that the fields show; Infinity if no window is shown. */
  #left(): number {
    const hasFields = Object.keys(this.headers).length > Object.keys(this.marks).length;
    return (this.#state !== 'abandoned' && hasFields ? this.decision?.shown?.remaining : undefined) ?? Infinity;
  }

  async cooldown(response: ProviderResponse): Promise<CooldownReport | undefined> {
    const field = fieldsOf(response);
    const pausing = (this.#stack ?? [this]).filter(({ pauses }) => pauses !== undefined);
    if (pausing.length === 0) throw new OptionError('cooldown', undefined, NO_COOLDOWN);
    const reports = await Promise.all(
      pausing.map((one) => {
        one.#isReported = true;
        return one.#report(response.status, field);
      }),
    );
    return reports.find((report) => report !== undefined);
  }

  #isPastProvider({ cached, fromGate }: GateOutcome): boolean {
    return !(cached || fromGate || this.options.providerAnswers === false);
  }

  #reportOnce(
    { status, unanswered, header = noField }: GateOutcome,
    isProviders: boolean,
  ): Promise<unknown> | undefined {
    if (unanswered || !isProviders || this.pauses === undefined || this.#isReported) return undefined;
    return this.#report(status, header);
  }

  /** Never rejects. */
  async #report(status: number, field: ReadField): Promise<CooldownReport | undefined> {
    const { decision, requestId, pauses } = this;
    if (decision === undefined) return undefined;
    try {
      const report = await pauses?.report(decision, status, field);
      if (report !== undefined) this.events.emit({ type: 'cooldown', requestId, decision, ...report });
      return report;
    } catch (error) {
      this.events.emitFailure({ requestId, stage: 'cooldown', error });
      return undefined;
    }
  }

  /** Whether a 429, or another refusal, from behind the gate is the provider's own (S16, S30). */
  #isProviders({ status, header = noField }: GateOutcome): ProviderAnswers {
    const { providerAnswers = this.pauses !== undefined } = this.options;
    if (typeof providerAnswers !== 'function') return providerAnswers;
    try {
      const answer: unknown = providerAnswers({ status, header });
      // An asynchronous function is a mistake. An unhandled rejection would end the process.
      if (isPromise(answer)) answer.then(undefined, noField);
      return isProviderAnswers(answer) ? answer : false;
    } catch (error) {
      this.events.emitFailure({ requestId: this.requestId, stage: 'providerAnswers', error });
      return false;
    }
  }

  get holdsSlot(): boolean {
    return this.decision?.inFlight !== undefined;
  }

  end(): MaybePromise<void> {
    // A release that was made before changes nothing.
    if (this.decision !== undefined && this.holdsSlot) return this.#releaseSlot(this.decision);
  }

  async #releaseSlot(decision: Decision): Promise<void> {
    try {
      await this.options.limiter.release(decision);
    } catch (error) {
      this.events.emitFailure({ requestId: this.requestId, stage: 'release', error });
    }
  }

  async #abandon(): Promise<Reply | undefined> {
    const [instead] = await Promise.all([this.#releaseClaim?.(), this.#settleCharge(0), this.end()]);
    return instead;
  }

  /** Settles the charge by `finalCost`, if that returns another cost than the charged cost (S13). */
  #applyFinalCost({ status, header = noField }: GateOutcome): void {
    const { finalCost } = this.options;
    if (finalCost === undefined || this.decision === undefined) return;
    try {
      const cost: unknown = finalCost({ status, header });
      this.checks?.finalCost(cost, status);
      if (cost === undefined) return;
      if (isPromise(cost)) {
        // An unhandled rejection would end the process.
        cost.then(undefined, noField);
        throw new OptionError('finalCost()', cost, 'must not return a promise', 'a promise');
      }
      checkCosts(cost, 0);
      // A decision that costs no request can cost other units, and 0 refunds them all.
      if (cost === 0 || cost !== this.decision.cost) void this.#settleCharge(cost);
    } catch (error) {
      this.events.emitFailure({ requestId: this.requestId, stage: 'finalCost', error });
    }
  }

  /** @param cost 0 refunds the charge */
  async #settleCharge(cost: Cost): Promise<void> {
    const { decision, requestId } = this;
    if (decision === undefined) return;
    try {
      const changed = await this.options.limiter.settle(decision, cost);
      if (cost === 0) this.events.emit({ type: 'refund', requestId, decision, refunded: changed });
      else this.events.emit({ type: 'settled', requestId, decision, cost, changed });
    } catch (error) {
      this.events.emitFailure({ requestId, stage: cost === 0 ? 'refund' : 'settle', error });
    }
  }
}
