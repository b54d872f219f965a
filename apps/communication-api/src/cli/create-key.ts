import type { Logger } from 'pino';
import { type Application, Applications } from '../applications/applications.ts';
import type { Config } from '../config.ts';
import { UserError } from '../domain/user-error.ts';
import { Keys } from '../keys/keys.ts';
import type { KeyFlags, Terminal } from './command-line.ts';
import { openStore } from './open-store.ts';

const YEAR_MS = 31_536_000_000;

/**
 * Makes a service key without one: the first key of an installation. Prints the token, which is shown only here; it is
 * the only line on the standard output, so that a script can read it.
 */
export async function createKey(
  config: Config,
  { application: name, environment, name: keyName = 'bootstrap', expires }: KeyFlags,
  terminal: Terminal,
  log: Logger,
): Promise<void> {
  const store = await openStore(config, log);
  try {
    const applications = new Applications(store.db, Date.now);
    const existing = await applications.findOldest(name);
    refuseOtherEnvironment(existing, environment);
    const application = existing ?? (await applications.create(name ?? 'Default', environment ?? 'development'));
    const expiresAt = expires ?? new Date(Date.now() + YEAR_MS);
    const { id, token } = await new Keys(store.db, Date.now, log).create(application.id, application.environment, {
      name: keyName,
      role: 'service',
      scopeId: null,
      expiresAt,
    });
    terminal.error(
      `${existing === undefined ? 'New application' : 'Application'} ${JSON.stringify(application.name)} (${application.id}, ${application.environment})\n` +
        `Service key ${id}, valid until ${expiresAt.toISOString()}. Its token is shown only once:\n`,
    );
    terminal.out(`${token}\n`);
  } finally {
    await store.close();
  }
}

/** A key takes the environment of its application, so a different environment is refused. */
function refuseOtherEnvironment(application: Application | undefined, environment: string | undefined): void {
  if (application === undefined || environment === undefined || application.environment === environment) return;
  throw new UserError(
    `--environment: the application ${JSON.stringify(application.name)} is for ${application.environment}. Give another --application, or leave out --environment.`,
    2,
  );
}
