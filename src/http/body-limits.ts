import { BodyError, type BodyErrorStatus } from './body-error.ts';
import type { ErrorType } from './error-types.ts';

/** Default of `idleMs`: the longest wait for the next piece of a body, in milliseconds. */
export const DEFAULT_IDLE_MS = 30_000;

/** `type` of the error response per status of a {@link BodyError}, without 500, which is a mistake in the program. */
export const BODY_ERROR_TYPES = {
  400: 'errors/malformed_request',
  408: 'errors/request_timeout',
  413: 'errors/payload_too_large',
  422: 'errors/unprocessable_entity',
  503: 'errors/service_unavailable',
} as const satisfies { [Status in Exclude<BodyErrorStatus, 500>]: ErrorType<Status> };

/** A body may consist of this many pieces of any length. */
const MAX_SMALL_PIECES = 8_192;
/** Past that, its pieces average at least this many bytes. Each one costs some hundred bytes while it waits. */
const MIN_AVERAGE_BYTES = 8;

/** Counts the bytes of one body, and refuses the body if it is too long, or comes in too many tiny pieces. */
export class BodySize {
  #bytes = 0;
  #pieces = 0;

  constructor(readonly maxBytes: number) {}

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Rejects a body by its Content-Length, before any of it is read.
   * @throws BodyError `too_large` (413)
   */
  expect(contentLength: string | null | undefined): void {
    if (Number(contentLength ?? 0) > this.maxBytes) throw tooLarge(this.maxBytes);
  }

  /**
   * Counts one piece.
   * @throws BodyError `too_large` (413), `too_fragmented` (400)
   */
  add(bytes: number): void {
    this.#bytes += bytes;
    this.#pieces++;
    if (this.#bytes > this.maxBytes) throw tooLarge(this.maxBytes);
    if (this.#pieces > MAX_SMALL_PIECES && this.#bytes < this.#pieces * MIN_AVERAGE_BYTES) throw tooFragmented();
  }
}

/** Gives up on a body whose next piece does not arrive within `idleMs`. */
export class IdleTimer {
  readonly #idleMs: number;
  readonly #onStalled: (error: BodyError) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param onStalled called with `stalled` (408) if the next piece does not arrive in time */
  constructor(idleMs: number, onStalled: (error: BodyError) => void) {
    this.#idleMs = idleMs;
    this.#onStalled = onStalled;
  }

  /** Starts to wait for the next piece. */
  restart(): void {
    this.stop();
    this.#timer = setTimeout(() => this.#onStalled(stalled(this.#idleMs)), this.#idleMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** The connection, or the stream, ended before the end of the body. */
export function aborted(cause: unknown): BodyError {
  return new BodyError(400, 'aborted', 'The body ended before it was complete.', { cause });
}

/** Something in front of the gate read the body. */
export function alreadyRead(remedy = 'mount the gate before anything that reads it'): BodyError {
  return new BodyError(500, 'already_read', `The body was already read: ${remedy}.`);
}

/** The body is longer than `maxBytes`. */
export function tooLarge(maxBytes: number): BodyError {
  return new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
}

function tooFragmented(): BodyError {
  const limit = `more than ${MAX_SMALL_PIECES} pieces of fewer than ${MIN_AVERAGE_BYTES} bytes on average`;
  return new BodyError(400, 'too_fragmented', `The body comes in ${limit}: send larger pieces.`);
}

function stalled(idleMs: number): BodyError {
  return new BodyError(408, 'stalled', `No more of the body arrived for ${idleMs} ms.`);
}
