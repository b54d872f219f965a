import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from './gateway.ts';

export const ROOT = resolve(import.meta.dirname, '../../../..');
export const DEPLOY = join(ROOT, 'apps/gateway/docs/deploy');
/** The config of apps/gateway/docs/deploy. */
export const CONFIG = join(DEPLOY, 'config/headgate.json');
/** Where every file of apps/gateway/docs/deploy expects the config. */
export const MOUNTED_CONFIG = '/etc/headgate/headgate.json';

/** The text of a file of apps/gateway/docs/deploy. */
export const textOf = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');

/** What the tests read of the config of apps/gateway/docs/deploy. */
export interface DeployedConfig extends Config {
  readonly listen: { readonly port: number };
  readonly admin: { readonly port: number };
  readonly upstream: string;
  readonly routes: readonly object[];
  readonly shutdownDelayMs: number;
  readonly drainMs: number;
}

export const config = JSON.parse(readFileSync(CONFIG, 'utf8')) as DeployedConfig;
