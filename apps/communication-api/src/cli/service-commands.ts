import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { loadPlugins } from '../providers/plugins.ts';
import { createService } from '../service.ts';
import { checkAccount } from './check-account.ts';
import type { Terminal } from './command-line.ts';
import { openStore } from './open-store.ts';

export { runDoctor } from './doctor.ts';
export { start } from './start.ts';

export async function check(
  config: Config,
  account: string,
  to: string | undefined,
  terminal: Terminal,
  log: Logger,
): Promise<number> {
  const providers = await loadPlugins(config.PROVIDERS);
  const { db, masterKeys, close } = await openStore(config, log);
  try {
    const service = await createService({ config, db, masterKeys, log, providers });
    try {
      return await checkAccount(service.rooms, account, to, terminal);
    } finally {
      await service.close();
    }
  } finally {
    await close();
  }
}
