/**
 * Why the upstream did not answer a request, or broke its response off: it refused the connection; its name could not be
 * resolved; its certificate is not trusted; it was too late; it closed the connection; the TLS handshake failed for
 * another reason than its certificate; its response is not valid HTTP.
 */
export const UPSTREAM_CAUSES = [
  'refused',
  'dns',
  'certificate',
  'timeout',
  'reset',
  'tls',
  'invalid',
  'other',
] as const;

export type UpstreamCause = (typeof UPSTREAM_CAUSES)[number];

/** A request that the upstream did not answer, or not in full. */
export interface UpstreamFailure {
  /** Host and port of the upstream. */
  readonly upstream: string;
  readonly cause: UpstreamCause;
  /** The error's code, such as `ECONNREFUSED`, if given. */
  readonly code: string | undefined;
  /** Whether the upstream may have received the request. */
  readonly isSent: boolean;
}
