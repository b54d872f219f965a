import { checkArgument } from '../shared/mount.ts';

/** Checks the shape: a runtime, a polyfill or a test may use another class. */
export function isWebRequest(value: unknown): value is Request {
  const { headers, url } = Object(value) as Partial<Request>;
  // The url of h3's event, which carries headers too, is an object.
  return typeof headers?.get === 'function' && typeof url === 'string';
}

/**
 * Checks the argument of a helper.
 * @throws OptionError
 */
export function checkWebRequest(request: unknown): void {
  checkArgument(isWebRequest(request), 'request', request, 'a Request of the web');
}
