import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../domain/service-error.ts';

/** 32 MiB and three passes: one of the settings that OWASP recommends for scrypt. About 0.3 s of one core. */
const COST = { N: 2 ** 15, r: 8, p: 3 };
const MAX_MEMORY = 64 * 1_024 * 1_024;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Hashes that are made at a time. Each one takes a thread of the pool, and others need threads, too. */
const AT_ONCE = 2;
/** More would wait for longer than a person does, and their requests would use up the memory. */
const MAX_WAITING = 32;
const RETRY_SECONDS = 5;

let running = 0;
const waiting: (() => void)[] = [];

/** The stored form of a password: the settings, a salt and the hash. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COST);
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** A hash that matches no password. The comparison takes as long as with a real hash. */
const NOBODY = `scrypt$${COST.N}$${COST.r}$${COST.p}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * Whether a password matches a hash.
 * @param hashed undefined: the login does not exist. The answer takes as long as for an existing login
 */
export async function isPassword(password: string, hashed: string | undefined): Promise<boolean> {
  const [, n, r, p, salt = '', hash = ''] = (hashed ?? NOBODY).split('$');
  const expected = Buffer.from(hash, 'base64url');
  const given = await derive(password, Buffer.from(salt, 'base64url'), { N: Number(n), r: Number(r), p: Number(p) });
  return timingSafeEqual(given, expected) && hashed !== undefined;
}

async function derive(password: string, salt: Uint8Array, cost: ScryptOptions): Promise<Buffer> {
  if (waiting.length === MAX_WAITING)
    throw new ServiceError(503, 'errors/service_unavailable', 'Too many passwords are compared now. Try again later.', {
      retryAfter: RETRY_SECONDS,
    });
  if (running === AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running++;
  try {
    return await new Promise<Buffer>((resolve, reject) =>
      // Two ways to type an accent are one password.
      scrypt(password.normalize('NFKC'), salt, HASH_BYTES, { ...cost, maxmem: MAX_MEMORY }, (error, key) =>
        error === null ? resolve(key) : reject(error),
      ),
    );
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}
