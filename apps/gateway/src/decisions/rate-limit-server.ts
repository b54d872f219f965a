import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { METHOD, readCall, writeAnswer } from './rate-limit-messages.ts';
import type { DecideRateLimits, RateLimitAnswer, RateLimitCall } from './rate-limit-service.ts';

/** Largest message, in bytes. */
const MAX_MESSAGE_BYTES = 65_536;
/** Most descriptors of a call, which are decided one after the other. */
const MAX_DESCRIPTORS = 32;
/** Most calls of one connection at a time. */
const MAX_STREAMS = 1_000;

/** The state of a call for log and metrics: a code of the answer, or of an error of gRPC. */
export type CallCode = 'OK' | 'OVER_LIMIT' | 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'INTERNAL';

export interface RateLimitServerOptions {
  readonly host: string;
  readonly port: number;
  /** Returns the current rules. Called once per call. */
  readonly decide: () => DecideRateLimits;
  /** Whether an error means that the store could not decide. */
  readonly isOutage: (error: unknown) => boolean;
  readonly onCall: (
    call: RateLimitCall | undefined,
    code: CallCode,
    answer: RateLimitAnswer | undefined,
    ms: number,
  ) => void;
  readonly onError: (error: unknown) => void;
}

/** A listening rate limit service. */
export interface RateLimitServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Refuses new calls. Resolves when no call runs. */
  drain(): Promise<void>;
  close(): void;
}

/**
 * Serves Envoy's rate limit service, version 3, over HTTP/2 without TLS.
 * @throws (rejects with) the error of the system, if it cannot listen
 */
export async function startRateLimitServer(options: RateLimitServerOptions): Promise<RateLimitServer> {
  const { host, port, decide, isOutage, onCall, onError } = options;
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': MAX_STREAMS,
  });
  const answer = async (call: RateLimitCall | undefined, callback: sendUnaryData<RateLimitAnswer>): Promise<void> => {
    const startedAt = performance.now();
    const end = (code: CallCode, result?: RateLimitAnswer, details?: string): void => {
      onCall(call, code, result, performance.now() - startedAt);
      if (result === undefined) callback({ code: status[code as 'INTERNAL'], details: details ?? code });
      else callback(null, result);
    };
    const flaw = flawOf(call);
    if (call === undefined || flaw !== undefined) {
      end('INVALID_ARGUMENT', undefined, flaw);
      return;
    }
    try {
      const result = await decide()(call);
      end(result.isOverLimit ? 'OVER_LIMIT' : 'OK', result);
    } catch (error) {
      if (isOutage(error)) end('UNAVAILABLE', undefined, 'the rate limit could not be checked; nothing was charged');
      else {
        onError(error);
        end('INTERNAL', undefined, 'internal error');
      }
    }
  };
  server.addService(
    {
      shouldRateLimit: {
        path: METHOD,
        requestStream: false,
        responseStream: false,
        requestSerialize: refuseToWrite,
        requestDeserialize: tryRead,
        responseSerialize: writeAnswer,
        responseDeserialize: refuseToWrite,
      },
    },
    {
      shouldRateLimit: (
        { request }: ServerUnaryCall<{ readonly call: RateLimitCall | undefined }, RateLimitAnswer>,
        callback: sendUnaryData<RateLimitAnswer>,
      ) => void answer(request.call, callback),
    },
  );
  const bound = await new Promise<number>((resolve, reject) => {
    const name = host.includes(':') ? `[${host}]` : host;
    server.bindAsync(`${name}:${port}`, ServerCredentials.createInsecure(), (error, at) =>
      error === null ? resolve(at) : reject(error),
    );
  });
  return {
    address: { host, port: bound },
    drain: () => new Promise((resolve) => server.tryShutdown(() => resolve())),
    close: () => server.forceShutdown(),
  };
}

/** A malformed message becomes INVALID_ARGUMENT, where gRPC itself would answer INTERNAL. */
function tryRead(bytes: Buffer): { readonly call: RateLimitCall | undefined } {
  try {
    return { call: readCall(bytes) };
  } catch {
    return { call: undefined };
  }
}

function refuseToWrite(): never {
  throw new Error('only a client needs this');
}

function flawOf(call: RateLimitCall | undefined): string | undefined {
  if (call === undefined) return 'the message is malformed';
  const { domain, descriptors } = call;
  if (domain === '') return 'domain must not be empty';
  if (descriptors.length === 0) return 'there must be a descriptor';
  if (descriptors.length > MAX_DESCRIPTORS) return `there must be at most ${MAX_DESCRIPTORS} descriptors`;
  const hits = descriptors.map(({ hitsAddend = 0 }) => hitsAddend);
  return hits.every(Number.isSafeInteger) ? undefined : 'hits_addend is too large';
}
