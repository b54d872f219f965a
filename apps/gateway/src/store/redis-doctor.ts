import { Cluster, type Redis } from 'ioredis';
import type { Config } from '../config/schema.ts';
import type { RedisUrl } from '../config/store-url.ts';
import { type Finding, ok } from './finding.ts';
import { answers, connected, createRedisClient } from './redis-client.ts';

const CONNECT_MS = 3_000;
/** Oldest major version that the scripts are tested on. Older ones are past their end of life. */
const OLDEST_MAJOR = 6;
/** Only the server's clock times windows. If it is far from this machine's, logs are hard to read. */
const FAR_MS = 1_000;

/** Checks a server, or every master of a cluster. */
export async function examineRedis(config: Config, url: RedisUrl): Promise<Finding[]> {
  let lastError: Error | undefined;
  const client = createRedisClient(url, (error) => {
    lastError = error;
  });
  try {
    if (!(await connected(client, CONNECT_MS)) || !(await answers(client, CONNECT_MS))) {
      const why = lastError === undefined ? `no answer within ${CONNECT_MS} ms` : lastError.message;
      return [{ verdict: 'fault', subject: 'reachable', text: `${why}: the gateway would serve degraded` }];
    }
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    const perNode = await Promise.all(nodes.map((node) => examineNode(node, config)));
    const cluster = client instanceof Cluster ? [await examineCluster(nodes[0] as Redis)] : [];
    return [ok('reachable', `${nodes.length} server(s)`), ...cluster, ...perNode.flat()];
  } finally {
    client.disconnect();
  }
}

async function examineNode(node: Redis, { routes }: Config): Promise<Finding[]> {
  const isIdempotent = routes.some(({ idempotent = false }) => idempotent !== false);
  return Promise.all([
    look('version', async () => {
      const version = /redis_version:([\d.]+)/.exec(await node.info('server'))?.[1] ?? 'unknown';
      return Number.parseInt(version, 10) >= OLDEST_MAJOR
        ? ok('version', version)
        : { verdict: 'fault', subject: 'version', text: `${version}: Redis ${OLDEST_MAJOR}.0 or newer is needed` };
    }),
    look('eviction', async () => {
      const policy = /maxmemory_policy:(\S+)/.exec(await node.info('memory'))?.[1] ?? 'unknown';
      if (policy === 'noeviction') return ok('eviction', policy);
      const risk = `an evicted counter allows more requests${isIdempotent ? ', and an evicted idempotency key sends twice' : ''}`;
      return { verdict: 'warning', subject: 'eviction', text: `${policy}: ${risk}; set maxmemory-policy noeviction` };
    }),
    look('persistence', async () => {
      const isLogged = /aof_enabled:1/.test(await node.info('persistence'));
      if (isLogged) return ok('persistence', 'appendonly yes');
      if (!isIdempotent) return ok('persistence', 'appendonly no: a restart forgets the counters');
      const text =
        'appendonly no: a restart forgets idempotency keys, and a retry is executed again; set appendonly yes';
      return { verdict: 'warning', subject: 'persistence', text };
    }),
    look('clock', async () => {
      const [seconds, micros] = await node.time();
      const distance = Math.abs(Number(seconds) * 1_000 + Number(micros) / 1_000 - Date.now());
      if (distance <= FAR_MS) return ok('clock', `${Math.round(distance)} ms from this machine's`);
      const text = `${Math.round(distance / 1_000)} s from this machine's; limits use only the server's clock`;
      return { verdict: 'warning', subject: 'clock', text };
    }),
    look('scripts', async () => {
      await node.eval("return redis.call('TIME')[1]", 0);
      return ok('scripts', 'EVAL is allowed');
    }),
  ]);
}

async function examineCluster(node: Redis): Promise<Finding> {
  return look('cluster', async () => {
    const info = String(await node.call('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok')
      ? ok('cluster', 'every slot has a server')
      : { verdict: 'fault', subject: 'cluster', text: 'cluster_state is not ok: some slots have no server' };
  });
}

/**
 * A failed check is a warning, because an ACL may forbid INFO and still allow all that the gateway needs. Without EVAL
 * it cannot work.
 */
async function look(subject: string, check: () => Promise<Finding>): Promise<Finding> {
  try {
    return await check();
  } catch (error) {
    const verdict = subject === 'scripts' ? 'fault' : 'warning';
    return { verdict, subject, text: `check failed: ${error instanceof Error ? error.message : String(error)}` };
  }
}
