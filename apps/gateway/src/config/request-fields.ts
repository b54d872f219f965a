import { isHopByHop } from 'headgate/internal';

/** The gateway appends its own values to these fields. */
export const FORWARDED_FIELDS = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/** The gateway removes these fields, or sets them itself. */
export const NOT_FORWARDED: ReadonlySet<string> = new Set(['host', 'expect', 'x-request-id']);

/** The gateway reads, sets or replaces these fields itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...FORWARDED_FIELDS,
  ...NOT_FORWARDED,
  'x-api-key',
  'authorization',
  'idempotency-key',
  'content-length',
]);

/**
 * Fields by which an upstream lets a proxy override a request's method, path or client: the gateway judges these
 * without the fields. Every other field whose name begins with `x-forwarded-` is one too.
 */
export const OBEYED_FIELDS: ReadonlySet<string> = new Set([
  // Another method: Rack, Symfony, Laravel, Slim, ASP.NET, OData, and the package method-override.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  // Another path: URL Rewrite of IIS, Symfony, Laminas, Envoy, Ingress of NGINX, WSGI applications.
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'x-override-url',
  'x-envoy-original-path',
  'x-script-name',
  // Another handler, or another file: Next.js, and Rack::Sendfile.
  'x-middleware-subrequest',
  'x-matched-path',
  'x-invoke-path',
  'x-now-route-matches',
  'x-sendfile-type',
  'x-accel-mapping',
  // Another host or scheme: Symfony, Rack, ASP.NET, Django.
  'x-host',
  'x-original-host',
  'x-http-host-override',
  'x-url-scheme',
  'front-end-https',
  // Another client: NGINX, Rails, Express, Spring, Go's middleware, and the networks of Akamai, Cloudflare and others.
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-originating-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-azure-clientip',
  'x-appengine-user-ip',
  'x-envoy-external-address',
  'true-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'fastly-client-ip',
  'fly-client-ip',
  // CGI makes HTTP_PROXY of it, which HTTP clients take for their proxy.
  'proxy',
]);

/**
 * Whether a field stays behind unless the config lists it. CGI, WSGI, PHP and others take every character of a name
 * that is neither a letter nor a digit for a hyphen, so such a name is another spelling of some field.
 * @param name in lower case
 */
export function isObeyed(name: string): boolean {
  return OBEYED_FIELDS.has(name) || name.startsWith('x-forwarded-') || !/^[a-z\d-]+$/.test(name);
}

/**
 * Whether only the gateway may send a field, in any spelling.
 * @param name in lower case
 */
export function isOwnField(name: string): boolean {
  const spelling = name.replace(/[^a-z\d]/g, '-');
  return OWN_FIELDS.has(spelling) || isHopByHop(spelling);
}
