import type { Readable } from 'node:stream';
import { aborted, alreadyRead, IdleTimer } from '../../http/body-limits.ts';

/** Where a body comes from: a Node stream, or any async iterable of bytes. */
export type BodySource = Readable | AsyncIterable<Uint8Array>;

export interface PumpOptions {
  /** Longest wait for the next chunk, in milliseconds. */
  readonly idleMs: number;
  /** Ends the reading. */
  readonly signal: AbortSignal | undefined;
}

/** Takes one chunk. If it returns a promise, the next chunk waits for it. */
export type TakeChunk = (chunk: Uint8Array) => Promise<void> | undefined;

/**
 * Reads a body to its end, no faster than `take` accepts it. If that fails, the source is paused but not destroyed, because the client
 * still gets an answer.
 *
 * @throws BodyError `aborted` (400), `stalled` (408), `already_read` (500), and whatever `take` throws
 */
export function pump(source: BodySource, take: TakeChunk, { idleMs, signal }: PumpOptions): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let isSettled = false;
    const settle = (finish: () => void): void => {
      if (isSettled) return;
      isSettled = true;
      idle.stop();
      signal?.removeEventListener('abort', onAbort);
      reading.stop();
      finish();
    };
    const flow: Flow = {
      take: (chunk) => {
        idle.stop();
        if (!(chunk instanceof Uint8Array)) throw alreadyRead();
        return take(chunk);
      },
      wait() {
        if (!isSettled) idle.restart();
      },
      done: () => settle(resolve),
      fail: (error) => settle(() => reject(error)),
    };
    const idle = new IdleTimer(idleMs, flow.fail);
    const onAbort = (): void => flow.fail(aborted(signal?.reason));
    const reading = isStream(source) ? readStream(source, flow) : readIterable(source, flow);
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted) onAbort();
    else {
      flow.wait();
      reading.start();
    }
  });
}

/** What a reading reports to the pump. */
interface Flow {
  readonly take: TakeChunk;
  /** The next chunk is awaited. */
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
    // A stream may also close after its end, while the last chunk is still being taken.
    if (!source.readableEnded) flow.fail(aborted(source.errored));
  };
  return {
    start() {
      // A stream that has ended emits no more events.
      if (source.readableEnded) flow.fail(alreadyRead());
      else if (source.destroyed) flow.fail(aborted(source.errored));
      else source.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
    },
    stop() {
      source.off('data', onData).off('end', onEnd).off('close', onClose);
      // The error listener stays: a later error must not end the process.
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
      // This may wait for a chunk that never comes, so it is not awaited.
      iterator.return?.().catch(() => {});
    },
  };
}

function isStream(source: BodySource): source is Readable {
  return 'pause' in source && 'on' in source;
}
