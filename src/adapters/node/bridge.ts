import type { ServerResponse } from 'node:http';
import { after, type MaybePromise } from '../../base/maybe-promise.ts';
import type { Gate, GateEntry, GateOutcome, Passage } from '../../gate/gate.ts';
import type { RejectionError } from '../../gate/rejection-error.ts';
import type { Reply } from '../../http/problem.ts';
import { forgetBody } from '../shared/request.ts';
import { AnswerCapture } from './capture.ts';
import { endWithConnection } from './connection-end.ts';
import { type HeadersInput, headerOf, settleHead } from './head.ts';
import { checkNodeResponse, isGone, type NodeResponse } from './http.ts';

// Stored on the response itself: a WeakMap entry per request is work for the garbage collector.
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');
/** The status of a gate's own answer, for the gates in front of it. 0: an error handler chooses the status. */
const ANSWER = Symbol('headgate.answer');

interface Marks {
  [PASSAGE]?: Passage;
  [FROM_CACHE]?: boolean;
  [ANSWER]?: number;
}

/** One request of a framework on Node, and the framework's reaction to each result of a gate. */
export interface NodeExchange<Result> {
  readonly response: ServerResponse;
  /** Appears in error answers and events; the gate makes one if it is undefined. */
  readonly requestId?: string | undefined;
  /** Sends an answer of the gate's own. */
  answer(reply: Reply): MaybePromise<Result>;
  /** Passes an error to the framework: see the option `rejection`. Absent if no gate of the adapter throws. */
  reject?: ((error: RejectionError) => MaybePromise<Result>) | undefined;
  /**
   * Runs the handler, or returns control to the framework.
   * @param capture records the response, if retries will replay it; `fail()` reports a handler that threw and will not
   * answer
   */
  proceed(capture: AnswerCapture | undefined): MaybePromise<Result>;
  /** The outcome would be stored, but the client is gone or something else answered: the handler must not run. */
  skip(): MaybePromise<Result>;
  /** If given, called in place of `proceed` and `skip`, for a request that must not reach its handler. */
  turnBack?: ((passage: Passage) => MaybePromise<Result>) | undefined;
}

/** Call it before the head is written if a cache answers the request: the charge is refunded (S12). */
export function servedFromCache(response: NodeResponse): void {
  checkNodeResponse(response);
  (response as Marks)[FROM_CACHE] = true;
}

/** The passage of a response's request: its `decision`, and `abandon()` if it never reached the provider. */
export function passageOf(response: NodeResponse): Passage | undefined {
  checkNodeResponse(response);
  return (response as Marks)[PASSAGE];
}

/** Takes a request through a gate. Synchronous if the gate and the exchange are: no turn of the event loop is lost. */
export function enterGate<Subject, Result>(
  gate: Gate<Subject>,
  subject: Subject,
  exchange: NodeExchange<Result>,
): MaybePromise<Result> {
  const { requestId, response } = exchange;
  return after(gate.enter(subject, requestId, (response as Marks)[PASSAGE]), (entry) => leaveGate(entry, exchange));
}

function leaveGate<Result>(entry: GateEntry, exchange: NodeExchange<Result>): MaybePromise<Result> {
  const response: ServerResponse & Marks = exchange.response;
  if (entry.kind === 'answer') {
    const { error, status } = entry.reply;
    if (error === undefined || exchange.reject === undefined) {
      response[ANSWER] = status;
      return exchange.answer(entry.reply);
    }
    response[ANSWER] = 0;
    return exchange.reject(error);
  }
  if (exchange.turnBack !== undefined) return exchange.turnBack(entry);
  const { recording } = entry;
  response[PASSAGE] = entry;
  if (entry.holdsSlot) endWithResponse(response, entry);
  forgetBody(response.req, recording !== undefined);
  if (recording === undefined) {
    addFields(response, entry);
    if (entry.hasFinalCost) settleWithoutHead(response, entry);
    return exchange.proceed(undefined);
  }
  if (response.headersSent || response.writableEnded || isGone(response)) {
    // The handler did nothing yet, so a retry must be able to run it.
    void entry.abandon();
    return exchange.skip();
  }
  return exchange.proceed(new AnswerCapture(response, entry, recording, (status) => outcomeOf(response, status)));
}

function outcomeOf(response: Marks, status: number): GateOutcome {
  return {
    status,
    cached: response[FROM_CACHE] === true,
    fromGate: response[ANSWER] === 0 || response[ANSWER] === status,
  };
}

/** A request is in flight until its response was handed to the operating system, or its connection or stream is closed. */
function endWithResponse(response: ServerResponse, passage: Passage): void {
  const end = (): void => void passage.end?.();
  if (response.writableFinished || isGone(response)) end();
  else {
    response.once('finish', end).once('close', end);
    endWithConnection(response, end);
  }
}

/** Adds the gate's fields when the head is written. */
function addFields(response: ServerResponse & Marks, passage: Passage): void {
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse;
  const withFields = (status: number, first?: string | HeadersInput, second?: HeadersInput) => {
    response.writeHead = writeHead;
    const all = settleHead(response, passage, outcomeOf(response, Number(status)), first, second);
    return typeof first === 'string'
      ? writeHead.call(response, status, first, all)
      : writeHead.call(response, status, all);
  };
  response.writeHead = withFields as typeof response.writeHead;
}

/** Node writes no head if the client is gone. The handler's answer still decides the cost of the request. */
function settleWithoutHead(response: ServerResponse & Marks, passage: Passage): void {
  const { end } = response;
  const settled = (...given: Parameters<typeof end>) => {
    response.end = end;
    if (!response.headersSent && isGone(response)) {
      const header = (name: string) => headerOf(response, undefined, name);
      passage.settle({ header, ...outcomeOf(response, response.statusCode) });
    }
    return end.apply(response, given);
  };
  response.end = settled as typeof end;
}
