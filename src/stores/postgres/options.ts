import { createLogger, type Logger } from '../../base/logger.ts';
import { checkFunctions, checkInteger } from '../../base/options.ts';
import type { Clock } from '../../core/clock.ts';
import { checkClock } from '../memory/options.ts';

/**
 * The options that all stores in PostgreSQL share, with their defaults.
 * @throws OptionError
 */
export function fillCommonOptions(options: {
  readonly deadlineMs?: number | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly logger?: Logger | false | undefined;
  readonly clock?: Clock | undefined;
}) {
  const { deadlineMs = 250, onError, logger, clock } = options;
  checkInteger('deadlineMs', deadlineMs, 1);
  checkFunctions(options, ['onError']);
  if (clock !== undefined) checkClock(clock);
  return { deadlineMs, onError, clock, log: createLogger(logger) };
}
