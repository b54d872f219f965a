import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Envelope } from '../security/envelope.ts';

/** Proves that a form was made by the wizard, for this session and for this form. */
export class Csrf {
  readonly #key: Uint8Array;

  constructor(envelope: Envelope) {
    this.#key = envelope.derive('csrf');
  }

  /** @param form the form's address below the link, such as `step/login` */
  tokenOf(sessionId: string, form: string): string {
    return createHmac('sha256', this.#key).update(`${sessionId} ${form}`).digest('base64url');
  }

  isValid(sessionId: string, form: string, token: string | undefined): boolean {
    const expected = Buffer.from(this.tokenOf(sessionId, form));
    const given = Buffer.from(token ?? '');
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}

/**
 * Whether a browser says that another site sent a form. The referrer policy of our pages is `no-referrer`, and with it
 * browsers send `Origin: null`, so `Sec-Fetch-Site` decides. If a browser sends neither, the token decides.
 */
export function isFromOtherSite({ headers }: FastifyRequest, ownOrigin: string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin';
  const { origin } = headers;
  return origin !== undefined && origin !== 'null' && origin !== ownOrigin;
}
