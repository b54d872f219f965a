import type { Readable } from 'node:stream';
import { aborted, alreadyRead, IdleTimer } from 'headgate/internal';

export interface PumpOptions {
  /** Longest wait for the next chunk, in milliseconds. */
  readonly idleMs: number;
}

/** Takes one chunk. If it returns a promise, the next chunk waits for it. */
export type TakeChunk = (chunk: Uint8Array) => Promise<void> | undefined;

/**
 * Reads a body to its end, no faster than `take` accepts it. If that fails, the source is paused but not destroyed,
 * because the client still gets an answer.
 *
 * @throws BodyError `aborted` (400), `stalled` (408), `already_read` (500), and whatever `take` throws
 */
export function pump(source: Readable, take: TakeChunk, { idleMs }: PumpOptions): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let isSettled = false;
    let taking: Promise<void> | undefined;
    const settle = (finish: () => void): void => {
      if (isSettled) return;
      isSettled = true;
      idle.stop();
      // The error listener stays: a later error must not end the process.
      source.off('data', onData).off('end', onEnd).off('close', onClose);
      if (!source.destroyed && !source.readableEnded) source.pause();
      finish();
    };
    const fail = (error: unknown): void => settle(() => reject(error));
    const onError = (error: unknown): void => fail(aborted(error));
    const onEnd = (): void => {
      if (taking === undefined) settle(resolve);
      else void taking.then(() => settle(resolve));
    };
    const onClose = (): void => {
      // A stream may also close after its end, while the last chunk is still being taken.
      if (!source.readableEnded) fail(aborted(source.errored));
    };
    const goOn = (): void => {
      if (isSettled) return;
      idle.restart();
      source.resume();
    };
    const onData = (chunk: unknown): void => {
      idle.stop();
      try {
        if (!(chunk instanceof Uint8Array)) throw alreadyRead();
        const taken = take(chunk);
        if (taken !== undefined) {
          source.pause();
          taking = taken.then(goOn, fail);
        } else if (!isSettled) idle.restart();
      } catch (error) {
        fail(error);
      }
    };
    const idle = new IdleTimer(idleMs, fail);
    // An ended stream emits no more events.
    if (source.readableEnded) fail(alreadyRead());
    else if (source.destroyed) fail(aborted(source.errored));
    else {
      idle.restart();
      source.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
    }
  });
}
