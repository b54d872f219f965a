import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { joinPath } from '../dashboard/paths.ts';
import { backUpNightly } from '../db/backups.ts';
import { UserError } from '../domain/user-error.ts';
import { loadPlugins } from '../providers/plugins.ts';
import { createService, type Service } from '../service.ts';
import { banner } from './banner.ts';
import type { Terminal } from './command-line.ts';
import { createDemonstration } from './demonstration.ts';
import { openStore, type Store } from './open-store.ts';

const IDLE_CHECK_MS = 50;

/** A service that listens. */
export interface RunningService {
  /** Origin that it listens on. */
  readonly url: string;
  /** Accepts no more requests, lets the running ones end within DRAIN_MS, and closes everything. */
  stop(): Promise<void>;
}

/**
 * Starts the service and prints its banner. The first start on an embedded database makes a demonstration.
 * @throws UserError
 */
export async function start(config: Config, terminal: Terminal, log: Logger): Promise<RunningService> {
  // A plug-in with a fault is reported before anything is opened.
  const providers = await loadPlugins(config.PROVIDERS);
  const store = await openStore(config, log);
  let service: Service | undefined;
  try {
    service = await createService({ config, db: store.db, masterKeys: store.masterKeys, log, providers });
    const url = await listen(service, config);
    const { applications, clock } = service.rooms;
    const isFirst = store.embedded !== undefined && (await applications.isEmpty());
    const demonstration = isFirst ? await createDemonstration(service.rooms) : undefined;
    terminal.out(
      banner({
        url,
        directory: store.embedded?.directory,
        hasKeyFile: config.SECRET_KEYS === undefined,
        demonstration,
        hasApplication: !(await applications.isEmpty()),
        nowMs: clock(),
        setUpLink: await setUpLink(service, config, url),
      }),
    );
    return running(service, store, config, log, url, terminal);
  } catch (error) {
    await service?.close();
    await store.close();
    throw error;
  }
}

/** The link for the first owner. It changes with each start, and works until there is an owner. */
async function setUpLink({ rooms }: Service, config: Config, url: string): Promise<string | undefined> {
  const token = await rooms.people.invitations.createSetUpLink();
  // The system has chosen the port, so the settings do not know it.
  const origin = config.PORT === 0 ? url : config.BASE_URL;
  return token === undefined ? undefined : origin + joinPath(token);
}

function running(
  service: Service,
  store: Store,
  config: Config,
  log: Logger,
  url: string,
  terminal: Terminal,
): RunningService {
  const backups =
    store.embedded &&
    backUpNightly(store.embedded.directory, store.embedded.database, (error, path) =>
      error === undefined ? log.info({ path }, 'backup written') : log.error({ err: error }, 'backup failed'),
    );
  const stop = async (): Promise<void> => {
    terminal.out('\nStopping: running requests may end first.\n');
    const { server } = service.app;
    const cut = setTimeout(() => {
      log.warn('DRAIN_MS is over: the remaining requests are cut off');
      server.closeAllConnections();
    }, config.DRAIN_MS);
    // A connection whose last answer has ended would stay open for its next request.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
    await service.close();
    clearTimeout(cut);
    clearInterval(idle);
    await backups?.stop();
    await store.close();
  };
  return { url, stop };
}

async function listen({ app }: Service, { HOST, PORT }: Config): Promise<string> {
  try {
    await app.listen({ host: HOST, port: PORT });
  } catch (cause) {
    throw new UserError(reasonOf(cause as NodeJS.ErrnoException, HOST, PORT), 1, { cause });
  }
  const { address, port } = app.server.address() as AddressInfo;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE')
    return `PORT: another process listens on ${host}:${port}. Stop it, or set another PORT, for example PORT=${port + 1}.`;
  if (code === 'EACCES') return `PORT: this user may not listen on ${host}:${port}. Set a PORT from 1024.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `HOST: this machine does not have the address ${host}.`;
  return `HOST, PORT: cannot listen on ${host}:${port}: ${message}`;
}
