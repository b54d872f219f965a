import { watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Log } from '../operations/log.ts';
import type { Reloader } from './reloader.ts';

/** A changed file is reloaded if its content is the same after this time, so that a half-written file is not read. */
const SETTLE_MS = 1_000;
/** How often the content is compared, because some file systems report no changes. */
const COMPARE_MS = 5_000;

/**
 * Reloads the config when its file changes, until the process ends. Watches the folder: in a ConfigMap of Kubernetes the
 * file is a symbolic link to `..data/…`, and only the link `..data` changes.
 */
export function watchConfig(file: string, reloader: Reloader, log: Log): { close(): void } {
  /** A new content that may not be complete yet. */
  let unsettled: string | undefined;
  let settling: NodeJS.Timeout | undefined;
  let isLooking = false;
  let lookAgain = false;
  const lookOnce = async (): Promise<void> => {
    const { content, isNew } = await reloader.state();
    const isSettled = content === unsettled;
    unsettled = isNew && !isSettled ? content : undefined;
    if (isNew && isSettled) await reloader.reload();
    if (unsettled === undefined) return;
    settling = setTimeout(() => {
      settling = undefined;
      void look();
    }, SETTLE_MS);
  };
  const look = async (): Promise<void> => {
    lookAgain = true;
    if (isLooking) return;
    isLooking = true;
    while (lookAgain && settling === undefined) {
      lookAgain = false;
      await lookOnce();
    }
    isLooking = false;
  };
  const comparing = setInterval(look, COMPARE_MS).unref();
  const watcher = watchFolder(dirname(file), look, (error) =>
    log.logger.warn(
      { err: error },
      `the folder of the config cannot be watched: it is compared every ${COMPARE_MS / 1_000} s`,
    ),
  );
  return {
    close() {
      clearInterval(comparing);
      clearTimeout(settling);
      watcher?.close();
    },
  };
}

function watchFolder(folder: string, onChange: () => void, onError: (error: Error) => void) {
  try {
    return watch(folder, onChange).on('error', onError);
  } catch (error) {
    onError(error as Error);
    return undefined;
  }
}
