import type { Decision } from '../core/decision.ts';
import type { Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { Events } from './events.ts';
import type { Outcome, Passage, Settlement } from './gate.ts';
import type { Recording } from './recording.ts';

const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});

/** The passage of one request that may go on. */
export class GatePassage implements Passage {
  readonly kind = 'proceed';
  marks = NO_HEADERS;
  #open = true;
  #abandoning: Promise<Reply | undefined> | undefined;
  recording: Recording | undefined;
  #release: (() => Promise<Reply | undefined>) | undefined;

  constructor(
    readonly decision: Decision | undefined,
    public headers: HeaderFields,
    readonly requestId: string,
    private readonly limiter: Limiter,
    private readonly events: Events,
  ) {}

  /** @param release gives the claim back */
  holding(recording: Recording, release: () => Promise<Reply | undefined>): this {
    // Whatever came first: of a claim that was given back nothing is kept.
    this.recording = { ...recording, store: (response) => this.#abandoning ?? recording.store(response) };
    this.#release = release;
    return this;
  }

  /** With `marks` beside its own headers, whatever is answered. */
  marked(marks: HeaderFields): this {
    this.marks = marks;
    this.headers = { ...this.headers, ...marks };
    return this;
  }

  settle({ status, cached = false }: Outcome): Settlement {
    if (this.#open && cached) void this.#refund();
    this.#open = false;
    // What was given back is not shown.
    if (status !== 429) return { headers: this.#abandoning ? this.marks : this.headers, stripRateLimit: false };
    this.events.emit({ type: 'provider_rejected', requestId: this.requestId, decision: this.decision });
    return { headers: this.marks, stripRateLimit: true };
  }

  abandon(): Promise<Reply | undefined> {
    if (this.#open) this.#abandoning = this.#abandon();
    this.#open = false;
    return this.#abandoning ?? Promise.resolve(undefined);
  }

  async #abandon(): Promise<Reply | undefined> {
    const [instead] = await Promise.all([this.#release?.(), this.#refund()]);
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
