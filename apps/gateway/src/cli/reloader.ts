import type { Overrides } from '../config/config.ts';
import { parseConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { warningsFor } from '../config/warnings.ts';
import type { Gateway } from '../gateway.ts';
import type { ConfigMetrics, ReloadResult } from '../operations/config-metrics.ts';
import type { Log } from '../operations/log.ts';
import { type ConfigFile, readConfigFileAgain } from './config-file.ts';
import { UsageError } from './usage.ts';

/** Options of {@link createReloader}. */
export interface ReloaderOptions {
  /** The file of the config that is served. */
  readonly file: Pick<ConfigFile, 'name' | 'hash'>;
  /** Flags win over the file at each reload too. */
  readonly overrides: Overrides;
  /** Applies a checked config. */
  readonly apply: Gateway['reload'];
  readonly log: Log;
  readonly metrics: ConfigMetrics;
}

/** Reads the config file again while the process serves. */
export interface Reloader {
  /**
   * Checks the whole file, and then applies it; a fault changes nothing and is logged. Reloads run one after the other.
   * A reload that waits for its turn serves all callers. Never rejects.
   */
  reload(): Promise<ReloadResult>;
  /** Whether the file differs from the file of the last reload. A file that cannot be read counts as a content too. */
  state(): Promise<{ readonly content: string; readonly isNew: boolean }>;
}

export function createReloader({ file, overrides, apply, log, metrics }: ReloaderOptions): Reloader {
  /** Hash of the last valid file. */
  let { hash: validHash } = file;
  /** Hash of the last file that was read. */
  let content = file.hash;
  let last: Promise<unknown> = Promise.resolve();
  let waiting: Promise<ReloadResult> | undefined;

  const adopt = async ({ hash, text }: ConfigFile): Promise<ReloadResult> => {
    const config = parseConfig(text, file.name, overrides);
    const { changed, needsRestart } = await apply(config);
    const isSameFile = hash === validHash;
    const isUnchanged = changed.length === 0 && (needsRestart.length === 0 || isSameFile);
    validHash = hash;
    if (!isUnchanged || !isSameFile) metrics.onConfig(hash);
    log.logger.info({ config: hash, changed }, isUnchanged ? 'config unchanged' : 'config reloaded');
    if (needsRestart.length > 0) log.logger.warn({ needsRestart }, 'these keys stay as they were until a restart');
    if (!isUnchanged) for (const { path, reason } of warningsFor(config)) log.logger.warn({ at: path }, reason);
    return isUnchanged ? 'unchanged' : 'applied';
  };
  const readAndAdopt = async (): Promise<ReloadResult> => {
    /** Undefined if the file could not be read. */
    let hash: string | undefined;
    try {
      const read = await readConfigFileAgain(file.name);
      hash = read.hash;
      content = hash;
      return await adopt(read);
    } catch (error) {
      if (error instanceof UsageError) content = error.message;
      log.logger.error({ config: hash, ...describe(error) }, 'config refused: the earlier one stays');
      return 'refused';
    }
  };
  return {
    reload() {
      waiting ??= last.then(async () => {
        waiting = undefined;
        const result = await readAndAdopt();
        metrics.onReload(result);
        return result;
      });
      last = waiting;
      return waiting;
    },
    async state() {
      const found = await readConfigFileAgain(file.name).then(
        ({ hash }) => hash,
        (error: Error) => error.message,
      );
      return { content: found, isNew: found !== content };
    },
  };
}

/** Each fault of the file with its place, or an error that is not about the file. */
function describe(error: unknown): object {
  if (error instanceof UsageError) return { faults: [error.message] };
  if (!(error instanceof ConfigError)) return { err: error };
  return { faults: error.issues.map(({ path, reason }) => (path === '' ? reason : `${path}: ${reason}`)) };
}
