import type { Server } from 'node:http';
import { relative } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { joinPath } from '../dashboard/paths.ts';
import { backUpNightly } from '../db/backups.ts';
import { answersRequests } from '../domain/process-role.ts';
import { createAdminServer } from '../observability/admin.ts';
import { loadPlugins } from '../providers/plugins.ts';
import { createService, type Service } from '../service.ts';
import { banner } from './banner.ts';
import type { Terminal } from './command-line.ts';
import { createDemonstration } from './demonstration.ts';
import { drain } from './drain.ts';
import { listen } from './listen.ts';
import { openStore, type Store } from './open-store.ts';

/** A service that runs. */
export interface RunningService {
  /** Origin that it listens on; undefined: it answers no requests. */
  readonly url: string | undefined;
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
  const store = await openStore(config, log, { onNew: (path) => terminal.out(`Making the database in ${path} …\n`) });
  let service: Service | undefined;
  let admin: Server | undefined;
  try {
    service = await createService({
      ...{ config, log, providers },
      ...{ db: store.db, pool: store.pool, masterKeys: store.masterKeys },
    });
    const adminPlace = { host: config.ADMIN_HOST, names: { host: 'ADMIN_HOST', port: 'ADMIN_PORT' } } as const;
    admin = createAdminServer(service.rooms.health, service.rooms.metrics);
    const adminUrl =
      config.ADMIN_PORT === undefined
        ? undefined
        : await listen(admin, (place) => began(admin as Server, place), { ...adminPlace, port: config.ADMIN_PORT });
    const url = answersRequests(config.ROLE) ? await listenForRequests(service, config) : undefined;
    const { applications, clock, health } = service.rooms;
    const isFirst = store.embedded !== undefined && (await applications.isEmpty());
    const demonstration = isFirst ? await createDemonstration(service.rooms) : undefined;
    terminal.out(
      banner({
        url,
        adminUrl,
        directory: store.embedded?.directory,
        hasKeyFile: config.SECRET_KEYS === undefined,
        demonstration,
        hasApplication: !(await applications.isEmpty()),
        nowMs: clock(),
        program: programName(),
        publicUrl: publicOrigin(config, url),
        setUpLink: await setUpLink(service, config, url),
      }),
    );
    health.started();
    return running({ service, admin, store, config, log, url, terminal });
  } catch (error) {
    await closeAdmin(admin);
    await service?.close();
    await store.close();
    throw error;
  }
}

/** The link for the first owner. It changes with each start, and works until there is an owner. */
async function setUpLink({ rooms }: Service, config: Config, url: string | undefined): Promise<string | undefined> {
  // A worker serves no pages.
  if (url === undefined) return undefined;
  const token = await rooms.people.invitations.createSetUpLink();
  return token === undefined ? undefined : publicOrigin(config, url) + joinPath(token);
}

/** @param url where the process listens. If the system chose the port, the settings do not know it. */
const publicOrigin = ({ PORT, BASE_URL }: Config, url: string | undefined): string =>
  PORT === 0 && url !== undefined ? url : BASE_URL;

/** How a person calls a command: with npm, if npm started this process. */
const programName = (): string =>
  process.env.npm_lifecycle_event === 'start' ? 'npm start --' : `node ${relative('.', process.argv[1] ?? 'main.js')}`;

interface RunningParts {
  readonly service: Service;
  readonly admin: Server;
  readonly store: Store;
  readonly config: Config;
  readonly log: Logger;
  readonly url: string | undefined;
  readonly terminal: Terminal;
}

function running({ service, admin, store, config, log, url, terminal }: RunningParts): RunningService {
  const backups =
    store.embedded &&
    backUpNightly(store.embedded.directory, store.embedded.database, (error, path) =>
      error === undefined ? log.info({ path }, 'backup written') : log.error({ err: error }, 'backup failed'),
    );
  const stop = async (): Promise<void> => {
    terminal.out('\nStopping: running requests may end first.\n');
    await drain(service, config, log);
    await service.close();
    await backups?.stop();
    await closeAdmin(admin);
    await store.close();
  };
  return { url, stop };
}

const listenForRequests = ({ app }: Service, { HOST, PORT }: Config): Promise<string> =>
  listen(app.server, ({ host, port }) => app.listen({ host, port }), {
    ...{ host: HOST, port: PORT },
    names: { host: 'HOST', port: 'PORT' },
  });

const began = (server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> =>
  new Promise((resolve, reject) => void server.once('error', reject).listen({ host, port }, resolve));

/** The last thing that operators see of a process is that it ends. */
async function closeAdmin(admin: Server | undefined): Promise<void> {
  if (admin?.listening !== true) return;
  const closed = new Promise((resolve) => admin.close(resolve));
  admin.closeAllConnections();
  await closed;
}
