import type { UpstreamCause } from '../exchange/upstream-failure.ts';
import { UnreadableResponse } from './response-reader.ts';

/** The first pattern that matches the code of an error gives its cause. */
const CAUSES: readonly (readonly [RegExp, UpstreamCause])[] = [
  [/^ECONNREFUSED$/, 'refused'],
  [/^ENOTFOUND$|^EAI_/, 'dns'],
  [/^ETIMEDOUT$|^ERR_SOCKET_CONNECTION_TIMEOUT$/, 'timeout'],
  [/^ECONNRESET$|^ECONNABORTED$|^EPIPE$/, 'reset'],
  // OpenSSL's own errors, alerts of the upstream among them: ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED is not about the
  // upstream's certificate, but about the gateway's.
  [/^ERR_SSL_|^EPROTO$/, 'tls'],
  // Results of the verification, such as DEPTH_ZERO_SELF_SIGNED_CERT: Node uses OpenSSL's names without their prefix.
  [/CERT|CRL|^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^UNABLE_TO_/, 'certificate'],
  [/^ERR_TLS_/, 'tls'],
];

/** The cause that the error of a connection to the upstream shows. */
export function causeOf(error: NodeJS.ErrnoException): UpstreamCause {
  if (error instanceof UnreadableResponse) return 'invalid';
  const { code } = error;
  if (code === undefined) return 'other';
  return CAUSES.find(([pattern]) => pattern.test(code))?.[1] ?? 'other';
}
