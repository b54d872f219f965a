import { bytesOf, inChunks } from 'headgate-testbed/bodies';
import { createFingerprinter, type Fingerprint, type RequestHead } from '../../src/http/fingerprint/fingerprint.ts';

/** Makes the fingerprint of a request with this body, passed in one piece or in chunks of `lengths`. */
export function makeFingerprint(
  body: Uint8Array | string,
  contentType: string | undefined,
  {
    lengths,
    head = {},
    account,
    secret,
  }: {
    lengths?: readonly number[];
    head?: Partial<RequestHead>;
    account?: string;
    secret?: string;
  } = {},
): Fingerprint {
  const fingerprinter = createFingerprinter(
    { method: 'POST', path: '/api/v1/emails', query: undefined, contentType, ...head },
    { secret },
  );
  for (const chunk of inChunks(bytesOf(body), lengths)) fingerprinter.write(chunk);
  fingerprinter.end();
  return fingerprinter.fingerprint(account);
}
