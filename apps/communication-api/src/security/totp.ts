import { Secret, TOTP } from 'otpauth';

const PERIOD_MS = 30_000;
/** Authenticator apps read only these. */
const SETTINGS = { algorithm: 'SHA1', digits: 6, period: PERIOD_MS / 1_000 } as const;
/** Steps by which the clock of a device may differ. */
const DRIFT = 1;
/** A longer text would make a picture that cameras read badly. */
const MAX_ISSUER = 60;

/** A new secret of 160 bits, as RFC 4226 recommends. */
export const newTotpSecret = (): Uint8Array => new Secret().bytes;

const secretOf = (bytes: Uint8Array): Secret => new Secret({ buffer: new Uint8Array(bytes).buffer });

/** A secret as a person types it: base32 in groups of four. */
export const typedSecret = (bytes: Uint8Array): string => secretOf(bytes).base32.replace(/.{4}(?=.)/g, '$& ');

/**
 * The time step of a code of six digits (RFC 6238). Undefined if no code of this step, the one before or the one after
 * is equal. Spaces do not count.
 */
export function stepOfCode(bytes: Uint8Array, code: string, nowMs: number): number | undefined {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const delta = TOTP.validate({ ...SETTINGS, token, secret: secretOf(bytes), timestamp: nowMs, window: DRIFT });
  return delta === null ? undefined : Math.floor(nowMs / PERIOD_MS) + delta;
}

/** The address that an authenticator app reads from the QR code. It contains the secret. */
export function totpUri(bytes: Uint8Array, { issuer, email }: { readonly issuer: string; readonly email: string }) {
  // A colon separates the issuer from the login.
  const name = [...issuer.replaceAll(':', ' ')].slice(0, MAX_ISSUER).join('');
  return new TOTP({ ...SETTINGS, issuer: name, label: email, secret: secretOf(bytes) }).toString();
}
