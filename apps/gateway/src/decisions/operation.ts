import type { GateEntry } from 'headgate/gate';
import type { MaybePromise } from 'headgate/stores';
import type { z } from 'zod';
import type { ApiKey } from '../admission/keys.ts';
import type { DescribedOperation } from '../api/operation.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** Who asks. */
export interface DecisionCaller {
  readonly key: ApiKey;
  readonly exchange: Exchange;
}

/** An operation of the decision API. */
export interface DecisionOperation extends DescribedOperation {
  /** Largest body, in bytes; 65,536 by default. */
  readonly maxBodyBytes?: number;
  /** Resolves to the value of the answer, to a refusal, or to what a gate says. */
  run(body: unknown, caller: DecisionCaller): MaybePromise<unknown>;
}

/** One row of the request table: the input that an operation accepts, its answer, and its function. */
export function decisionOperation<Body extends z.ZodObject, Answer extends z.ZodType>(
  parts: Omit<DecisionOperation, 'body' | 'answer' | 'run' | 'method' | 'role'> & {
    readonly body: Body;
    readonly answer: Answer;
    run(body: z.output<Body>, caller: DecisionCaller): MaybePromise<z.input<Answer> | Refusal | GateEntry>;
  },
): DecisionOperation {
  return { method: 'POST', role: 'key', ...parts } as unknown as DecisionOperation;
}

/** Whether a gate said this. */
export function isEntry(result: unknown): result is GateEntry {
  return typeof result === 'object' && result !== null && 'kind' in result;
}

/** A value of a body is wrong. */
export function invalid(path: string, reason: string): Refusal {
  return refuse(422, 'errors/unprocessable_entity', `${path}: ${reason}`);
}
