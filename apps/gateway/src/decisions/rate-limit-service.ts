import { randomUUID } from 'node:crypto';
import type { Decision, Limiter, WindowStatus } from 'headgate';
import type { GateAnswer, Passage } from 'headgate/gate';
import { RATE_LIMIT_FIELD_NAMES, type Reply } from 'headgate/http';
import type { MaybePromise } from 'headgate/stores';
import { peekAll } from '../api/peek-all.ts';
import { costIn } from '../base/cost.ts';
import { groupsOf } from '../config/groups.ts';
import type { Subject } from '../exchange/exchange.ts';
import type { DescriptorEntry, DescriptorSubject, FindDescriptor } from './descriptors.ts';

/** A call of the rate limit service. */
export interface RateLimitCall {
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  /** Cost of each descriptor without one of its own; 0 means 1. */
  readonly hitsAddend: number;
}

export interface RateLimitDescriptor {
  readonly entries: readonly DescriptorEntry[];
  /** Undefined if the descriptor has none. 0 charges nothing. */
  readonly hitsAddend: number | undefined;
}

/** What became of one descriptor. */
export type DescriptorOutcome = 'accepted' | 'rejected' | 'shadow' | 'unknown_account' | 'unmatched';

export interface DescriptorAnswer {
  readonly outcome: DescriptorOutcome;
  /** The window that matters most; undefined if none is known. */
  readonly shown: WindowStatus | undefined;
}

/** The answer to a call. */
export interface RateLimitAnswer {
  readonly isOverLimit: boolean;
  readonly descriptors: readonly DescriptorAnswer[];
  /** For the answer to the client. */
  readonly headers: Reply['headers'];
  /** The error object; undefined unless a limit rejected. */
  readonly body: string | undefined;
}

/** The store could not decide. */
export class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** Parts of the rules of a config. */
export interface RateLimitServiceOptions {
  readonly findDescriptor: FindDescriptor;
  readonly limiter: Limiter;
  readonly gate: { readonly enter: (subject: Subject, id: string) => MaybePromise<GateAnswer | Passage> };
  /** Called with the id of each decision when its call is answered. */
  readonly onDecided: (id: string) => void;
}

/**
 * Decides about all descriptors of a call: every one is charged, or none.
 * @throws UndecidedError
 */
export type DecideRateLimits = (call: RateLimitCall) => Promise<RateLimitAnswer>;

const UNMATCHED: DescriptorAnswer = { outcome: 'unmatched', shown: undefined };

export function createRateLimitService(options: RateLimitServiceOptions): DecideRateLimits {
  return (call) => new RunningCall(options, call).run();
}

/** The part of the answer that a rejection decides. */
type Rejection = Pick<RateLimitAnswer, 'headers' | 'body'>;

/** A descriptor was decided about. */
interface Decided {
  readonly answer: DescriptorAnswer;
  /** Undefined unless the whole call is rejected. */
  readonly rejection?: Rejection;
}

const NO_FIELDS: Rejection = { headers: {}, body: undefined };

class RunningCall {
  readonly #subjects: readonly (DescriptorSubject | undefined)[];
  readonly #passages: Passage[] = [];

  constructor(
    private readonly options: RateLimitServiceOptions,
    private readonly call: RateLimitCall,
  ) {
    this.#subjects = call.descriptors.map(({ entries }) => options.findDescriptor(call.domain, entries));
  }

  async run(): Promise<RateLimitAnswer> {
    // All at the same time, so that an accepted call is one trip to the store (S31).
    const settled = await Promise.allSettled(this.#subjects.map((_, at) => this.#decide(at)));
    const decided: Decided[] = [];
    for (const one of settled) {
      if (one.status === 'fulfilled') decided.push(one.value);
      else {
        await this.#refund();
        throw one.reason;
      }
    }
    const rejection = decided.find((one) => one.rejection !== undefined)?.rejection;
    if (rejection !== undefined) return this.#reject(decided, rejection);
    const headers = settleAll(this.#passages);
    const descriptors = decided.map(({ answer }) => answer);
    return { isOverLimit: false, descriptors, headers, body: undefined };
  }

  async #decide(at: number): Promise<Decided> {
    const subject = this.#subjects[at];
    if (subject === undefined) return { answer: UNMATCHED };
    const { route, account, isShadow } = subject;
    if (account === undefined) return rejected({ outcome: 'unknown_account', shown: undefined }, NO_FIELDS, isShadow);
    const cost = this.call.descriptors[at]?.hitsAddend ?? (this.call.hitsAddend || undefined);
    if (cost === 0) {
      const { hasRoom, shown } = await this.#peek(subject);
      if (hasRoom) return { answer: { outcome: 'accepted', shown } };
      return rejected({ outcome: 'rejected', shown }, NO_FIELDS, isShadow);
    }
    const id = randomUUID();
    const { lane } = route;
    const groups = groupsOf(route, undefined, account);
    const entry = await this.options.gate.enter({ route, account, cost, lane, groups, idempotent: undefined }, id);
    this.options.onDecided(id);
    if (entry.kind === 'proceed') {
      this.#passages.push(entry);
      return { answer: { outcome: 'accepted', shown: shownOf(entry.decision) } };
    }
    const { reply, decision } = entry;
    if (decision === undefined) throw new UndecidedError('the rate limit could not be checked; nothing was charged');
    const rejection = { headers: fieldsOf(reply), body: String(reply.body) };
    return rejected({ outcome: 'rejected', shown: shownOf(decision) }, rejection, isShadow);
  }

  /** Refunds the accepted descriptors, and shows how full their windows are without this call. */
  async #reject(decided: readonly Decided[], rejection: Rejection): Promise<RateLimitAnswer> {
    await this.#refund();
    const descriptors = await Promise.all(
      decided.map(async ({ answer }, at): Promise<DescriptorAnswer> => {
        const subject = this.#subjects[at];
        if (answer.outcome !== 'accepted' || subject === undefined) return answer;
        return { outcome: 'accepted', shown: (await this.#peek(subject)).shown };
      }),
    );
    return { isOverLimit: true, descriptors, ...rejection };
  }

  async #refund(): Promise<void> {
    await Promise.all(this.#passages.map((passage) => passage.abandon()));
  }

  async #peek({ route, account }: DescriptorSubject) {
    const { id = '', provider, plan } = account ?? {};
    const { name, lane, cost = 1 } = route;
    const groups = groupsOf(route, undefined, account);
    const windows = await peekAll(this.options.limiter, { account: id, route: name, provider, plan, lane, groups });
    const counted = windows.filter(({ unit }) => costIn(cost, unit) > 0);
    return { hasRoom: counted.every(({ remaining }) => remaining > 0), shown: leastOf(counted) };
  }
}

/** A shadow rejects nothing. */
function rejected(answer: DescriptorAnswer, rejection: Rejection, isShadow: boolean): Decided {
  return isShadow ? { answer: { ...answer, outcome: 'shadow' } } : { answer, rejection };
}

/** Ends every passage. Returns the fields of the one whose window has the least left. */
function settleAll(passages: readonly Passage[]): Reply['headers'] {
  let least = Number.POSITIVE_INFINITY;
  let shown: Reply['headers'] = {};
  for (const passage of passages) {
    const { headers } = passage.settle({ status: 200 });
    // Nobody says when the request of the other proxy ends.
    void passage.end?.();
    const left = shownOf(passage.decision)?.remaining ?? Number.POSITIVE_INFINITY;
    if (left < least) {
      least = left;
      shown = headers;
    }
  }
  return shown;
}

function shownOf(decision: Decision | undefined): WindowStatus | undefined {
  return decision === undefined || decision.degraded ? undefined : decision.shown;
}

function leastOf(windows: readonly WindowStatus[]): WindowStatus | undefined {
  const [first, ...others] = windows;
  return first && others.reduce((least, each) => (each.remaining < least.remaining ? each : least), first);
}

function fieldsOf({ headers }: Reply): Reply['headers'] {
  const names: readonly string[] = [...RATE_LIMIT_FIELD_NAMES, 'content-type'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}
