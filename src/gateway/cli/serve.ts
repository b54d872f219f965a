import type { Overrides } from '../config/config.ts';
import type { Config } from '../config/schema.ts';
import { warningsFor } from '../config/warnings.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { createLog, type Log } from '../operations/log.ts';
import { surviveErrors } from '../operations/survive.ts';
import { urlOf } from '../server/listen.ts';
import { startWorkers, workersOf } from '../workers/primary.ts';
import { type Demo, startDemo } from './demo.ts';

/**
 * Runs a gateway until a signal ends the process.
 * @param config undefined for the demonstration
 * @throws ConfigError, ListenError before anything is served
 */
export async function serve(config: Config | undefined, overrides: Overrides): Promise<void> {
  const log = createLog();
  const demo = config === undefined ? await startDemo(overrides) : undefined;
  const effective = config ?? (demo as Demo).config;
  try {
    const gateway = await (workersOf(effective) === 1 ? startGateway : startWorkers)(effective, log);
    announce(gateway, effective, demo, log);
    stopOnSignals(gateway, demo, log);
  } catch (error) {
    demo?.close();
    throw error;
  }
  surviveErrors(log);
}

function announce({ address, adminAddress }: Gateway, config: Config, demo: Demo | undefined, log: Log): void {
  if (demo !== undefined) process.stdout.write(`${demo.banner(address, adminAddress)}\n`);
  const schemeOf = (listener: Config['admin']) => (listener?.tls === undefined ? 'http' : 'https');
  if (adminAddress !== undefined) {
    log.logger.info({ ...adminAddress, url: urlOf(adminAddress, schemeOf(config.admin)) }, 'admin listening');
  }
  for (const { path, reason } of warningsFor(config)) log.logger.warn({ at: path }, reason);
  log.logger.info({ ...address, url: urlOf(address, schemeOf(config.listen)) }, 'listening');
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
}
