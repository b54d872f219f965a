// headgate in PostgreSQL, its floors and its peers take turns on one PostgreSQL server of the benchmark. Each part has a
// file of its own.
import { startPostgresServer } from 'headgate-bench/postgres-server';
import { startRedisServer } from 'headgate-bench/redis-server';
import * as claims from '../support/postgres-claims.mjs';
import * as limits from '../support/postgres-limits.mjs';

/** By name: `measure({ url, redisPort, …options })` and `report(result)`, as in a topic, and `versions()`. */
const PARTS = { limits, claims };

export async function measure(options) {
  const [server, redis] = await Promise.all([startPostgresServer(), startRedisServer()]);
  try {
    const versions = { postgres: server.version, redis: redis.version };
    const parts = {};
    for (const [name, part] of Object.entries(PARTS)) {
      Object.assign(versions, part.versions());
      parts[name] = await part.measure({ ...options, url: server.url, redisPort: redis.port });
    }
    return { versions, parts };
  } finally {
    redis.stop();
    await server.stop();
  }
}

export function report({ parts }) {
  const reports = Object.entries(parts).map(([name, result]) => PARTS[name].report(result));
  return {
    title: 'PostgreSQL',
    markdown: reports.map(({ markdown }) => markdown.trim()).join('\n\n'),
    targets: reports.flatMap(({ targets }) => targets),
    chart: reports[0].chart,
  };
}
