import type { Decision } from '../core/decision.ts';
import type { Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { GateEmitter } from './events.ts';
import type { Outcome, Passage, Settlement } from './gate.ts';
import type { Recording } from './recording.ts';

const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});

/** The passage of one request that the gate let through. */
export class GatePassage implements Passage {
  readonly kind = 'proceed';
  marks = NO_HEADERS;
  #isOpen = true;
  #abandoning: Promise<Reply | undefined> | undefined;
  recording: Recording | undefined;
  #releaseClaim: (() => Promise<Reply | undefined>) | undefined;

  constructor(
    readonly decision: Decision | undefined,
    public headers: HeaderFields,
    readonly requestId: string,
    private readonly limiter: Limiter,
    private readonly events: GateEmitter,
  ) {}

  /** Adds the claim of the request: `recording` completes it, `releaseClaim` releases it. */
  withClaim(recording: Recording, releaseClaim: () => Promise<Reply | undefined>): this {
    // Nothing is stored for a claim that was released first.
    this.recording = { ...recording, store: (response) => this.#abandoning ?? recording.store(response) };
    this.#releaseClaim = releaseClaim;
    return this;
  }

  /** Adds headers that every response carries. */
  withMarks(marks: HeaderFields): this {
    this.marks = marks;
    this.headers = { ...this.headers, ...marks };
    return this;
  }

  settle({ status, cached = false }: Outcome): Settlement {
    if (this.#isOpen && cached) void this.#refund();
    this.#isOpen = false;
    // A refunded charge is not shown.
    if (status !== 429) return { headers: this.#abandoning ? this.marks : this.headers, stripRateLimit: false };
    this.events.emit({ type: 'provider_rejected', requestId: this.requestId, decision: this.decision });
    return { headers: this.marks, stripRateLimit: true };
  }

  abandon(): Promise<Reply | undefined> {
    if (this.#isOpen) this.#abandoning = this.#abandon();
    this.#isOpen = false;
    return this.#abandoning ?? Promise.resolve(undefined);
  }

  async #abandon(): Promise<Reply | undefined> {
    const [instead] = await Promise.all([this.#releaseClaim?.(), this.#refund()]);
    return instead;
  }

  async #refund(): Promise<void> {
    const { decision, requestId } = this;
    if (decision === undefined) return;
    try {
      this.events.emit({ type: 'refund', requestId, decision, refunded: await this.limiter.refund(decision) });
    } catch (error) {
      this.events.emit({ type: 'failure', requestId, stage: 'refund', error });
    }
  }
}
