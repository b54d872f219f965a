import type { ServerResponse } from 'node:http';
import type { ErrorStatus } from 'headgate/http';
import type { MaybePromise } from 'headgate/stores';
import type { z } from 'zod';
import type { AdminRole } from '../config/schema/admin.ts';
import type { AdminToken } from '../config/schema.ts';
import { isRefusal, type Refusal } from '../exchange/refusal.ts';

/** Who sent a request, and its id. */
export interface Caller extends Pick<AdminToken, 'name' | 'role'> {
  /** Distinguishes tokens, because two of them may share a name. Appears in no answer. */
  readonly tokenId: string;
  /** `x-request-id` of the answer, and `req_id` of its error and of its log lines. */
  readonly requestId: string;
  /**
   * Whether the token is still valid. A streamed answer must ask, because a token expires, and a reload may remove it.
   */
  isPermitted(): boolean;
}

/** The header fields that an operation itself can write. The document describes them. */
export interface AnswerFields {
  readonly etag?: string;
}

/** An answer, or a refusal, with additional header fields and additional fields for the log line. */
export class Answered {
  constructor(
    readonly result: unknown,
    readonly headers: AnswerFields,
    readonly logged: Readonly<Record<string, unknown>> = {},
  ) {}
}

/** A streamed answer, until the client or the process ends it. */
export interface Streaming {
  stream(response: ServerResponse): void;
}

/** The parts of an operation of the Admin API. */
export interface OperationParts<
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
  Headers extends z.ZodObject,
> {
  /** Name in the document and in the metrics. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** The least role that may use it; `none`: it needs no token. */
  readonly role: AdminRole | 'none';
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Checks the parameters, and describes them in the document. */
  readonly query?: Query;
  readonly body?: Body;
  /** The request's header fields that the operation reads; checks and describes them, as `query` does parameters. */
  readonly headers?: Headers;
  /** Describes the answer in the document. */
  readonly answer: Answer;
  readonly mediaType?: 'text/event-stream';
  /** Statuses of the operation's specific errors. The document adds the errors of every operation. */
  readonly errors?: readonly ErrorStatus[];
  /** The statuses of answers with an `etag`. */
  readonly etagOn?: readonly number[];
  /** Further header fields of its answers, by status. */
  readonly fieldsOn?: Readonly<Record<number, readonly string[]>>;
  run(
    input: { readonly query: z.output<Query>; readonly body: z.output<Body>; readonly headers: z.output<Headers> },
    caller: Caller,
  ): MaybePromise<z.input<Answer> | Refusal | Streaming | Answered>;
}

/** What the document says about an operation. */
export interface DescribedOperation
  extends Omit<OperationParts<z.ZodObject, z.ZodObject, z.ZodType, z.ZodObject>, 'role' | 'run'> {
  /** The least role of a token that it needs; `key`: an API key; `none`: neither. */
  readonly role: AdminRole | 'key' | 'none';
}

/** An operation of any types. {@link operation} has checked that the types of its parts match. */
export interface Operation extends DescribedOperation {
  readonly role: AdminRole | 'none';
  run(input: { readonly query: unknown; readonly body: unknown; readonly headers: unknown }, caller: Caller): unknown;
}

/** One row of the request table: the input that an operation accepts, its answer, and its function. */
export function operation<
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
  Headers extends z.ZodObject,
>(parts: OperationParts<Query, Body, Answer, Headers>): Operation {
  return parts as unknown as Operation;
}

export function isStreaming(result: unknown): result is Streaming {
  return typeof result === 'object' && result !== null && 'stream' in result && !isRefusal(result);
}
