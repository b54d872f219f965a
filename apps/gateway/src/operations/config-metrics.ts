import { Counter, Gauge, type Registry } from 'prom-client';

/** Result of a reload: `refused` if the config is invalid, so that the earlier config stays. */
export type ReloadResult = 'applied' | 'unchanged' | 'refused';

/** Reports the config of the process, and the results of its reloads. */
export interface ConfigMetrics {
  /**
   * The process uses this config from now on.
   * @param hash hash of the file; undefined for a config that is not from a file
   */
  onConfig(hash: string | undefined): void;
  onReload(result: ReloadResult): void;
}

export function createConfigMetrics(registers: Registry[]): ConfigMetrics {
  const reloads = new Counter({
    name: 'headgate_config_reloads_total',
    help: 'Reloads of the config, by result: applied, unchanged, or refused because of a fault',
    labelNames: ['result'],
    registers,
  });
  for (const result of ['applied', 'unchanged', 'refused'] satisfies ReloadResult[]) reloads.inc({ result }, 0);
  const appliedAt = new Gauge({
    name: 'headgate_config_applied_timestamp_seconds',
    help: 'Time since which the process has its config, in seconds since 1970',
    // With workers only the primary sets these: it reads the file.
    aggregator: 'max',
    registers,
  });
  const isSuccessful = new Gauge({
    name: 'headgate_config_last_reload_successful',
    help: 'Whether the config file was valid when it was read last: 1 or 0',
    aggregator: 'min',
    registers,
  });
  isSuccessful.set(1);
  const info = new Gauge({
    name: 'headgate_config_info',
    help: 'Always 1. The label has the first 12 hexadecimal digits of the SHA-256 of the config file',
    labelNames: ['hash'],
    aggregator: 'max',
    registers,
  });
  return {
    onConfig(hash) {
      appliedAt.set(Date.now() / 1_000);
      info.reset();
      if (hash !== undefined) info.set({ hash }, 1);
    },
    onReload(result) {
      reloads.inc({ result });
      isSuccessful.set(result === 'refused' ? 0 : 1);
    },
  };
}
