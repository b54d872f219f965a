import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { databaseFolderIn } from '../db/embedded.ts';
import { MIGRATION_NAMES, OldSchemaError } from '../db/migrate.ts';
import { SealedValues } from '../db/sealed-values.ts';
import { counted } from '../domain/counted.ts';
import { PROVIDER_NAMES } from '../domain/providers.ts';
import { UserError } from '../domain/user-error.ts';
import { dryRun } from '../providers/dry-run.ts';
import { loadPlugins } from '../providers/plugins.ts';
import type { LinkableProvider } from '../providers/registry.ts';
import type { Rooms } from '../rooms.ts';
import { Envelope } from '../security/envelope.ts';
import { createService } from '../service.ts';
import { checkClock, checkDomains, checkRedis, checkRoles } from './checks.ts';
import type { Terminal } from './command-line.ts';
import { type Finding, note, ok, wrong } from './finding.ts';
import { openStore, type Store } from './open-store.ts';

/** The installation that is checked. */
interface Installation {
  readonly config: Config;
  readonly log: Logger;
  /** Undefined if the database cannot be opened or does not exist yet. */
  readonly store: Store | undefined;
}

/** One thing that `doctor` looks at. An error that it throws is a finding that something is wrong. */
interface Check {
  readonly name: string;
  run(installation: Installation): Promise<readonly Finding[]>;
}

/** A check that needs the database, and is left out without one. */
const withStore =
  (run: (store: Store, installation: Installation) => Promise<readonly Finding[]>): Check['run'] =>
  async (installation) =>
    installation.store === undefined ? [] : run(installation.store, installation);

/** In this order. A new check is a new entry. */
const CHECKS: readonly Check[] = [
  { name: 'secrets', run: withStore(checkSecrets) },
  { name: 'clock', run: withStore(({ db }) => checkClock(db)) },
  { name: 'redis', run: ({ config, log }) => checkRedis(config, log) },
  { name: 'roles', run: withStore(({ db }, { config, log }) => checkRoles(db, config, log)) },
  { name: 'domains', run: withStore(({ db }, { config, log }) => checkDomains(db, config, log)) },
  { name: 'providers', run: withStore(checkProviders) },
];

/** How long a check may take. */
const TIMEOUT_MS = 20_000;
/** How long a provider may take for the first page of its way to an account. */
const FIRST_PAGE_MS = 10_000;

/**
 * Examines an installation, and prints the findings. It sends nothing.
 * @returns the exit code: 1 if something is wrong
 */
export async function runDoctor(config: Config, terminal: Terminal, log: Logger): Promise<number> {
  let isWrong = false;
  const print = (name: string, findings: readonly Finding[]): void => {
    for (const { level, text } of findings) {
      terminal.out(`${level.padEnd(5)}  ${name}: ${text}\n`);
      isWrong ||= level === 'wrong';
    }
  };
  const { store, findings } = await examineDatabase(config, log);
  print('database', findings);
  try {
    for (const { name, run } of CHECKS) print(name, await inTime(() => run({ config, log, store })));
  } finally {
    await store?.close();
  }
  return isWrong ? 1 : 0;
}

async function examineDatabase(
  config: Config,
  log: Logger,
): Promise<{ readonly store: Store | undefined; readonly findings: readonly Finding[] }> {
  const directory = resolve(config.DATA_DIR);
  if (config.DATABASE_URL === undefined && !existsSync(databaseFolderIn(directory)))
    return { store: undefined, findings: [note(`no database in ${directory} yet: the first start makes it`)] };
  try {
    const store = await openStore(config, log, { mayMigrate: false });
    const where = store.embedded === undefined ? 'on the server of DATABASE_URL' : `embedded, in ${directory}`;
    return { store, findings: [ok(`${where}, with all ${MIGRATION_NAMES.length} migrations`)] };
  } catch (error) {
    if (error instanceof OldSchemaError && config.AUTO_MIGRATE)
      return { store: undefined, findings: [note(`${error.finding}: the next start brings it up to date`)] };
    return { store: undefined, findings: [wrong(textOf(error))] };
  }
}

/** Which master keys are in use, which are missing, and which are not needed any more. */
async function checkSecrets({ db, masterKeys }: Store, { config }: Installation): Promise<readonly Finding[]> {
  const source = config.SECRET_KEYS === undefined ? 'master.key' : 'SECRET_KEYS';
  const envelope = new Envelope(masterKeys);
  const values = new SealedValues(db, envelope);
  const uses = await values.uses();
  const findings = uses
    .filter(({ keyId }) => !envelope.keyIds.includes(keyId))
    .map(({ keyId, values: count }) =>
      wrong(`${secretsAre(count)} under ${keyId}, which is not in ${source}, and cannot be read. Put the key back`),
    );
  for (const keyId of envelope.keyIds) {
    const count = uses.find((use) => use.keyId === keyId)?.values ?? 0;
    findings.push(
      (await values.isKey(keyId))
        ? aboutKey(keyId, count, keyId === envelope.currentKeyId, source)
        : wrong(`${secretsAre(count)} under another key with the id ${keyId} than the one in ${source}`),
    );
  }
  return findings;
}

const secretsAre = (count: number): string => counted(count, 'secret is', 'secrets are');

function aboutKey(keyId: string, count: number, isCurrent: boolean, source: string): Finding {
  if (isCurrent) return ok(`${keyId} is the current master key; ${secretsAre(count)} under it`);
  if (count > 0) return note(`${secretsAre(count)} still under ${keyId}. Run rotate-keys`);
  return note(`none is under ${keyId}. It can be removed from ${source}, unless you need a backup from its time`);
}

/**
 * Builds the service without listening: an error there would also fail the start. Then makes the first page of every
 * way to an account, for which it asks the servers of Google and Microsoft.
 */
async function checkProviders({ db, masterKeys }: Store, { config, log }: Installation): Promise<readonly Finding[]> {
  const plugins = await loadPlugins(config.PROVIDERS);
  const service = await createService({ config, db, masterKeys, log, providers: plugins, isRunning: false });
  try {
    const { providers } = service.rooms;
    const linkable = providers.linkable('development');
    const faults = await Promise.all(linkable.map((provider) => faultsOf(provider, service.rooms)));
    const names = linkable.filter((_, index) => faults[index]?.length === 0).map(({ name }) => name);
    const others = PROVIDER_NAMES.filter((name) => !providers.names.includes(name));
    const rest = others.length === 0 ? '' : `; not configured: ${others.join(', ')}`;
    return [ok(`${names.join(', ')} can be linked${rest}`), ...faults.flat().map(wrong)];
  } finally {
    await service.close();
  }
}

async function faultsOf(provider: LinkableProvider, { config, egress, clock }: Rooms): Promise<readonly string[]> {
  const run = dryRun(provider, {
    loginHint: undefined,
    reconnect: undefined,
    offered: [provider.name],
    proxy: undefined,
    net: egress.through(undefined),
    callbackUrl: `${config.AUTH_URL}/auth/callback`,
    callbackState: randomBytes(32).toString('base64url'),
    settings: {},
    now: clock(),
    signal: AbortSignal.timeout(FIRST_PAGE_MS),
  });
  // A plug-in may ignore the signal.
  const late = pause(FIRST_PAGE_MS, [`link: no first page within ${FIRST_PAGE_MS / 1_000} s`], { ref: false });
  return (await Promise.race([run, late])).map((fault) => `${provider.name}: ${fault}`);
}

async function inTime(run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<readonly Finding[]>((done) => {
    timer = setTimeout(() => done([wrong(`no answer within ${TIMEOUT_MS / 1_000} s`)]), TIMEOUT_MS);
  });
  try {
    return await Promise.race([run(), deadline]);
  } catch (error) {
    return [wrong(textOf(error))];
  } finally {
    clearTimeout(timer);
  }
}

/** The text of an error that the operator can act on. Any other error is a fault of the program. */
const textOf = (error: unknown): string =>
  error instanceof UserError
    ? error.message
    : error instanceof Error
      ? `${error.name}: ${error.message}`
      : String(error);
