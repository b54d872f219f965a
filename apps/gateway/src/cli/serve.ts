import type { Overrides } from '../config/config.ts';
import type { Config } from '../config/schema.ts';
import { warningsFor } from '../config/warnings.ts';
import { workersOf } from '../config/workers.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { createLog, type Log } from '../operations/log.ts';
import { surviveErrors } from '../operations/survive.ts';
import { urlOf } from '../server/listen.ts';
import { startWorkers } from '../workers/primary.ts';
import type { ConfigFile } from './config-file.ts';
import { type Demo, startDemo } from './demo.ts';
import { whenNpxEnds } from './npx.ts';
import { createReloader, type Reloader } from './reloader.ts';
import { watchConfig } from './watch-config.ts';

/** The file that the config came from, so that it can be reloaded. */
export interface ConfigSource extends Pick<ConfigFile, 'name' | 'hash'> {
  /** Whether it is reloaded when the file changes. */
  readonly watch: boolean;
}

/**
 * Runs a gateway until a signal ends the process.
 * @param config undefined for the demonstration
 * @param source undefined if the config cannot be reloaded
 * @throws ConfigError, ListenError before anything is served
 */
export async function serve(config: Config | undefined, overrides: Overrides, source?: ConfigSource): Promise<void> {
  const log = createLog();
  const demo = config === undefined ? await startDemo(overrides) : undefined;
  const effective = config ?? (demo as Demo).config;
  const hangup = listenForHangup(source !== undefined, log);
  try {
    const gateway = await (workersOf(effective) === 1 ? startGateway : startWorkers)(effective, log);
    announce(gateway, effective, demo, source, log);
    gateway.configMetrics.onConfig(source?.hash);
    stopOnSignals(gateway, demo, log);
    if (source !== undefined) {
      const apply = (wanted: Config) => gateway.reload(wanted);
      const reloader = createReloader({ file: source, overrides, apply, log, metrics: gateway.configMetrics });
      if (source.watch) watchConfig(source.name, reloader, log);
      hangup.reloadWith(reloader);
    }
  } catch (error) {
    hangup.close();
    demo?.close();
    throw error;
  }
  surviveErrors(log);
}

function announce(
  { address, adminAddress, decisionsAddress, rateLimitServiceAddress }: Gateway,
  config: Config,
  demo: Demo | undefined,
  source: ConfigSource | undefined,
  log: Log,
): void {
  if (demo !== undefined) process.stdout.write(`${demo.banner(address, adminAddress)}\n`);
  const schemeOf = (listener: Pick<Config['listen'], 'tls'> | undefined) =>
    listener?.tls === undefined ? 'http' : 'https';
  if (adminAddress !== undefined) {
    log.logger.info({ ...adminAddress, url: urlOf(adminAddress, schemeOf(config.admin)) }, 'admin listening');
  }
  if (decisionsAddress !== undefined) {
    const { host, port } = decisionsAddress;
    const url = urlOf(decisionsAddress, schemeOf(config.decisions));
    log.logger.info({ host, port, url }, 'decisions listening');
  }
  if (rateLimitServiceAddress !== undefined) {
    const { host, port } = rateLimitServiceAddress;
    log.logger.info({ host, port }, 'rate limit service listening');
  }
  for (const { path, reason } of warningsFor(config)) log.logger.warn({ at: path }, reason);
  log.logger.info({ ...address, url: urlOf(address, schemeOf(config.listen)), config: source?.hash }, 'listening');
}

/** Listens to SIGHUP. It never ends the process, not even while the process starts. */
function listenForHangup(hasFile: boolean, log: Log): { reloadWith(reloader: Reloader): void; close(): void } {
  let reloader: Reloader | undefined;
  let isAsked = false;
  const onHangup = (): void => {
    if (!hasFile) log.logger.warn('SIGHUP: there is no config file to reload');
    isAsked = true;
    void reloader?.reload();
  };
  process.on('SIGHUP', onHangup);
  return {
    reloadWith(ready) {
      reloader = ready;
      if (isAsked) void ready.reload();
    },
    close: () => void process.off('SIGHUP', onHangup),
  };
}

function stopOnSignals(gateway: Gateway, demo: Demo | undefined, log: Log): void {
  let stopping = false;
  const exit = (code: number): void => void log.close().then(() => process.exit(code));
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1);
    stopping = true;
    log.logger.info({ signal }, 'draining');
    void gateway.stop().then(
      (cutOff) => {
        demo?.close();
        log.logger.info({ cutOff }, 'stopped');
        exit(0);
      },
      (error: unknown) => {
        log.logger.error({ err: error }, 'shutdown failed');
        exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  whenNpxEnds(() => {
    if (!stopping) onSignal('SIGTERM');
  });
}
