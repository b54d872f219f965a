import { randomBytes } from 'node:crypto';

const secrets = new Set<string>();

/** A password or code of a test. No log, no answer and no row of the database may contain it. */
export function secret(): string {
  return noteSecret(`canary${randomBytes(9).toString('hex')}`);
}

/** Notes a secret that a server of a test made, such as a token. */
export function noteSecret(made: string): string {
  secrets.add(made);
  return made;
}

/** Every secret that this test file made, in this order. */
export const madeSecrets = (): readonly string[] => [...secrets];

/** After each test file: see `built.ts`. The next one of this process does not look for them. */
export const forgetSecrets = (): void => secrets.clear();
