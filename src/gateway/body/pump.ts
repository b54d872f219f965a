import type { Readable } from 'node:stream';
import { BodyError } from '../../http/body-error.ts';

/** Where a body comes from: a Node stream, or whatever can be iterated. */
export type BodySource = Readable | AsyncIterable<Uint8Array>;

export interface PumpOptions {
  /** Longest wait for the next piece, in milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Takes a piece; where it returns a promise, the next one waits for it. */
export type Take = (chunk: Uint8Array) => Promise<void> | undefined;

/**
 * Reads a body to its end, no faster than it is taken. Where that fails the source is left as it is, paused and not destroyed: the client is
 * still to be answered.
 *
 * @throws BodyError `aborted` (400), `stalled` (408), `already_read` (500), and whatever `take` throws
 */
export function pump(source: BodySource, take: Take, options: PumpOptions): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const over = (): void => {
      isOver = true;
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onSignal);
      reading.stop();
    };
    const flow: Flow = {
      take: (chunk) => {
        clearTimeout(timer);
        if (!(chunk instanceof Uint8Array)) throw alreadyRead();
        return take(chunk);
      },
      wait() {
        clearTimeout(timer);
        if (!isOver) timer = setTimeout(() => flow.fail(stalled(options.idleMs)), options.idleMs);
      },
      done() {
        if (isOver) return;
        over();
        resolve();
      },
      fail(error) {
        if (isOver) return;
        over();
        reject(error);
      },
    };
    const onSignal = (): void => flow.fail(aborted(options.signal?.reason));
    const reading = isStream(source) ? readStream(source, flow) : readIterable(source, flow);
    options.signal?.addEventListener('abort', onSignal);
    if (options.signal?.aborted) onSignal();
    else {
      flow.wait();
      reading.start();
    }
  });
}

/** What a reading tells. */
interface Flow {
  readonly take: Take;
  /** The next piece is waited for. */
  wait(): void;
  done(): void;
  fail(error: unknown): void;
}

interface Reading {
  start(): void;
  stop(): void;
}

function readStream(source: Readable, flow: Flow): Reading {
  let taking: Promise<void> | undefined;
  const onData = (chunk: Uint8Array): void => {
    try {
      const taken = flow.take(chunk);
      if (taken === undefined) {
        flow.wait();
        return;
      }
      source.pause();
      taking = taken.then(() => {
        flow.wait();
        source.resume();
      }, flow.fail);
    } catch (error) {
      flow.fail(error);
    }
  };
  const onEnd = (): void => {
    if (taking === undefined) flow.done();
    else void taking.then(flow.done);
  };
  const onError = (error: unknown): void => flow.fail(aborted(error));
  const onClose = (): void => {
    // Closed behind its end, while the last piece is still being taken.
    if (!source.readableEnded) flow.fail(aborted(source.errored));
  };
  return {
    start() {
      // Its events have been.
      if (source.readableEnded) flow.fail(alreadyRead());
      else if (source.destroyed) flow.fail(aborted(source.errored));
      else source.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
    },
    stop() {
      source.off('data', onData).off('end', onEnd).off('close', onClose);
      // The listener for errors stays: one that comes later must not end the process.
      if (!source.destroyed && !source.readableEnded) source.pause();
    },
  };
}

function readIterable(source: AsyncIterable<Uint8Array>, flow: Flow): Reading {
  const iterator = source[Symbol.asyncIterator]();
  let isStopped = false;
  const read = async (): Promise<void> => {
    while (!isStopped) {
      flow.wait();
      const next = await iterator.next().catch((error: unknown) => {
        throw aborted(error);
      });
      if (isStopped) return;
      if (next.done === true) {
        isStopped = true;
        flow.done();
      } else await flow.take(next.value);
    }
  };
  return {
    start: () => void read().catch(flow.fail),
    stop() {
      if (isStopped) return;
      isStopped = true;
      // May wait for a piece that never comes: nobody waits for it.
      iterator.return?.().catch(() => {});
    },
  };
}

function isStream(source: BodySource): source is Readable {
  return 'pause' in source && 'on' in source;
}

function aborted(cause: unknown): BodyError {
  return new BodyError(400, 'aborted', 'The body broke off before its end.', { cause });
}

function stalled(idleMs: number): BodyError {
  return new BodyError(408, 'stalled', `Nothing more of the body came for ${idleMs} ms.`);
}

function alreadyRead(): BodyError {
  return new BodyError(500, 'already_read', 'The body was read or decoded by something else before.');
}
