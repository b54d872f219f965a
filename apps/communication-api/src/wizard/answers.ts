import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JSX } from 'preact';
import { pageHtml } from './pages/layout.tsx';

/**
 * The header fields of every answer of the wizard.
 * @param origins the origins, besides our own, that a form of the page leads to: the application's, and the provider's.
 * Null: only our own. Browsers apply `form-action` to every redirect behind a form, also to redirects of the
 * application and of the provider, which may lead anywhere. So all of https is allowed, and the origins themselves,
 * which may be http in development.
 * @param frames whether the page shows our own pages in frames. Default: false
 */
export const headersOf = (
  origins: readonly string[] | null,
  { frames = false }: { readonly frames?: boolean } = {},
): Readonly<Record<string, string>> => ({
  'cache-control': 'no-store',
  'content-security-policy': [
    `default-src 'none'`,
    `style-src 'self'`,
    `script-src 'self'`,
    `img-src 'self' data:`,
    `connect-src 'self'`,
    ...(frames ? [`frame-src 'self'`] : []),
    `frame-ancestors 'none'`,
    `base-uri 'none'`,
    ["form-action 'self'", ...(origins === null ? [] : ['https:', ...new Set(origins)])].join(' '),
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  vary: 'accept, accept-language, cookie',
});

/** Answers with a page of the wizard. Default of `status`: 200. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: JSX.Element, status = 200): FastifyReply {
  return reply
    .code(status)
    .headers(headersOf(request.formOrigins))
    .type('text/html; charset=utf-8')
    .send(pageHtml(page));
}

/** Leads on with a GET, also after a form. */
export function seeOther(request: FastifyRequest, reply: FastifyReply, url: string): FastifyReply {
  return reply.headers(headersOf(request.formOrigins)).redirect(url, 303);
}

/** Whether the client is a program, which reads error objects and no pages. */
export function wantsJson({ headers }: FastifyRequest): boolean {
  const accept = headers.accept ?? '';
  return /application\/(problem\+)?json/i.test(accept) && !/text\/html/i.test(accept);
}
