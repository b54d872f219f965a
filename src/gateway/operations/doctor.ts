import { Cluster, type Redis } from 'ioredis';
import type { Config } from '../config/schema.ts';
import { parseStoreUrl } from '../config/store-url.ts';
import { answers, connected, createRedisClient } from '../store/redis-client.ts';

/** One thing that was looked at. */
export interface Finding {
  readonly verdict: 'ok' | 'warning' | 'fault';
  readonly subject: string;
  /** What was found and, where it is not well, what to do. */
  readonly text: string;
}

const CONNECT_MS = 3_000;
/** Oldest major version that the scripts are tried on by anybody: older ones are past their end of life. */
const OLDEST = 6;
/** Windows are timed by the server alone; a far clock only makes logs hard to read. */
const FAR_MS = 1_000;

/** Looks at the store of a config: can it be reached, and does it do what the gateway needs? */
export async function examine(config: Config): Promise<Finding[]> {
  const url = parseStoreUrl(config.store);
  if (url === undefined || url.kind === 'memory') {
    return [{ verdict: 'ok', subject: 'store', text: 'in memory: nothing to reach; each process counts for itself' }];
  }
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
    const ofNodes = await Promise.all(nodes.map((node) => examineNode(node, config)));
    const state = client instanceof Cluster ? [await clusterState(nodes[0] as Redis)] : [];
    return [{ verdict: 'ok', subject: 'reachable', text: `${nodes.length} server(s)` }, ...state, ...ofNodes.flat()];
  } finally {
    client.disconnect();
  }
}

async function examineNode(node: Redis, { routes }: Config): Promise<Finding[]> {
  const keepsKeys = routes.some(({ idempotent = false }) => idempotent !== false);
  return Promise.all([
    look('version', async () => {
      const version = /redis_version:([\d.]+)/.exec(await node.info('server'))?.[1] ?? 'unknown';
      return Number.parseInt(version, 10) >= OLDEST
        ? ok('version', version)
        : { verdict: 'fault', subject: 'version', text: `${version}: Redis ${OLDEST}.0 or newer is needed` };
    }),
    look('eviction', async () => {
      const policy = /maxmemory_policy:(\S+)/.exec(await node.info('memory'))?.[1] ?? 'unknown';
      return policy === 'noeviction'
        ? ok('eviction', policy)
        : {
            verdict: 'warning',
            subject: 'eviction',
            text: `${policy}: an evicted counter is a fresh allowance${keepsKeys ? ', and an evicted idempotency key sends again' : ''}; set maxmemory-policy noeviction`,
          };
    }),
    look('clock', async () => {
      const [seconds, micros] = await node.time();
      const distance = Math.abs(Number(seconds) * 1_000 + Number(micros) / 1_000 - Date.now());
      return distance <= FAR_MS
        ? ok('clock', `${Math.round(distance)} ms from this machine's`)
        : {
            verdict: 'warning',
            subject: 'clock',
            text: `${Math.round(distance / 1_000)} s from this machine's; limits use the server's alone`,
          };
    }),
    look('scripts', async () => {
      await node.eval("return redis.call('TIME')[1]", 0);
      return ok('scripts', 'EVAL is allowed');
    }),
  ]);
}

async function clusterState(node: Redis): Promise<Finding> {
  return look('cluster', async () => {
    const info = String(await node.call('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok')
      ? ok('cluster', 'every slot has a server')
      : { verdict: 'fault', subject: 'cluster', text: 'cluster_state is not ok: some slots have no server' };
  });
}

/** What cannot be looked at is told as such: an ACL may well forbid INFO and allow all that the gateway needs. */
async function look(subject: string, ask: () => Promise<Finding>): Promise<Finding> {
  try {
    return await ask();
  } catch (error) {
    const verdict = subject === 'scripts' ? 'fault' : 'warning';
    return {
      verdict,
      subject,
      text: `could not be looked at: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

function ok(subject: string, text: string): Finding {
  return { verdict: 'ok', subject, text };
}

/** Findings as an aligned table. */
export function findingsTable(findings: readonly Finding[]): string {
  return findings.map(({ verdict, subject, text }) => `${verdict.padEnd(8)}${subject.padEnd(11)}${text}\n`).join('');
}
