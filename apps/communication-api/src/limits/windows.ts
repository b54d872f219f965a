import { formatWindow, isHeadgateError, type LimitInput, parseLimit } from 'headgate';
import { ServiceError } from '../domain/service-error.ts';

/** The windows of a limit in one form, the shortest first. */
export const canonicalWindows = (windows: LimitInput, place?: string): readonly string[] =>
  parseLimit(windows, place).map(formatWindow);

/**
 * The same, for windows that a client sent.
 * @throws ServiceError 422 with the text of the parser
 */
export function checkedWindows(windows: readonly string[]): readonly string[] {
  try {
    return canonicalWindows(windows, 'windows');
  } catch (error) {
    if (isHeadgateError(error, 'invalid_limit'))
      throw new ServiceError(422, 'errors/unprocessable_entity', error.message);
    throw error;
  }
}
