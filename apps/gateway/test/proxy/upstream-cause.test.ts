/** Each code that Node and OpenSSL give a failed connection has one cause. */
import { expect, it } from 'vitest';
import { UnreadableResponse } from '../../src/proxy/response-reader.ts';
import { causeOf } from '../../src/proxy/upstream-cause.ts';

it.each([
  ['refused', ['ECONNREFUSED']],
  ['dns', ['ENOTFOUND', 'EAI_AGAIN', 'EAI_NONAME']],
  [
    'certificate',
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
      'CERT_HAS_EXPIRED',
      'CRL_NOT_YET_VALID',
      'ERROR_IN_CERT_NOT_AFTER_FIELD',
      'INVALID_CA',
      'INVALID_PURPOSE',
      'PATH_LENGTH_EXCEEDED',
      'HOSTNAME_MISMATCH',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
  ],
  [
    'tls',
    ['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_TLS_INVALID_STATE'],
  ],
  ['timeout', ['ETIMEDOUT', 'ERR_SOCKET_CONNECTION_TIMEOUT']],
  ['reset', ['ECONNRESET', 'ECONNABORTED', 'EPIPE']],
  ['other', ['EHOSTUNREACH', 'ENETUNREACH', 'EMFILE', undefined]],
])('%s', (cause, codes) => {
  for (const code of codes)
    expect([code, causeOf(Object.assign(new Error('failed'), { code }))]).toEqual([code, cause]);
});

it('invalid: a response that is not HTTP', () => {
  expect(causeOf(new UnreadableResponse('the status line is malformed'))).toBe('invalid');
});
