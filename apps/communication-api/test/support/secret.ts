import { randomBytes } from 'node:crypto';

const secrets = new Set<string>();

/** A password or code of a test. No log, no answer and no row of the database may contain it. */
export function secret(): string {
  const made = `canary${randomBytes(9).toString('hex')}`;
  secrets.add(made);
  return made;
}

/** Every secret that the tests of this process have made. */
export const madeSecrets = (): readonly string[] => [...secrets];
