import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Link } from '../links/link.ts';

/** Characters of the link's hash: enough to distinguish the links of one browser. */
const SUFFIX = 8;

/**
 * The name of the cookie of a link's session. A browser stores one cookie per link, so several links work side by side.
 * The prefix `__Host-` keeps other hosts of the domain from setting it, but browsers take it over https only.
 */
export function cookieName({ token_hash }: Link, origin: string): string {
  const name = `wizard-${token_hash.slice(0, SUFFIX)}`;
  return origin.startsWith('https:') ? `__Host-${name}` : name;
}

export const readCookie = (request: FastifyRequest, name: string): string | undefined => {
  const value = request.cookies[name];
  return value === undefined || value === '' ? undefined : value;
};

/** Sets the cookie of a session. SameSite is Lax, since users come back from a provider by a cross-site navigation. */
export function setCookie(reply: FastifyReply, name: string, value: string, seconds: number): void {
  const secure = name.startsWith('__Host-');
  reply.setCookie(name, value, { path: '/', httpOnly: true, sameSite: 'lax', secure, maxAge: Math.max(1, seconds) });
}
