import { checkArgument } from '../shared/mount.ts';

/** Checks the shape: a runtime, a polyfill or a test may have another class. */
export function isWebRequest(value: unknown): value is Request {
  return typeof (value as Partial<Request> | null | undefined)?.headers?.get === 'function';
}

/**
 * Checks the argument of a helper.
 * @throws OptionError
 */
export function checkWebRequest(request: unknown): void {
  checkArgument(isWebRequest(request), 'request', request, 'a Request of the web');
}
