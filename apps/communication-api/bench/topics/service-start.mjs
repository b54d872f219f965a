// The service in apps/communication-api: how long it takes to start, and how much memory it has then.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bar, createCells } from 'headgate-bench/cells';
import { newDatabase, startPostgresServer } from 'headgate-bench/postgres-server';
import { versionOf } from 'headgate-bench/provenance';
import { freePort, startRedisServer } from 'headgate-bench/redis-server';
import { inRounds } from 'headgate-bench/rounds';
import { table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { SERVICE_BUILD, SERVICE_MAIN } from '../support/service-fleet.mjs';
import { startedProcess } from '../support/started-process.mjs';

const FLOOR = fileURLToPath(new URL('../support/start-floor.mjs', import.meta.url));
const [BARE, PGLITE] = ['bare Fastify', 'PGlite alone, second time'];
const [FIRST, SECOND] = ['embedded, first time', 'embedded, second time'];
const [SERVERS_FIRST, SERVERS_SECOND] = ['PostgreSQL + Redis, first time', 'PostgreSQL + Redis, second time'];
const NAMES = [BARE, PGLITE, FIRST, SECOND, SERVERS_FIRST, SERVERS_SECOND];
const FLOORS = [BARE, PGLITE];
const WORKLOAD = 'start';
const BANNER = 'communication-api  http';
const MB = 1_000_000;
const MOST_MS = 3_000;
const MOST_MB = 450;

export async function measure({ quick, profile, progress, rounds = quick ? 2 : 7 }) {
  execFileSync(process.execPath, [SERVICE_BUILD, '--if-changed'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-start-'));
  const [postgres, redis] = await Promise.all([startPostgresServer(), startRedisServer()]);
  const secret = { SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  const onServers = (url) => ({ DATABASE_URL: url, REDIS_URL: `redis://127.0.0.1:${redis.port}`, ...secret });
  const known = join(folder, 'known');
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const service = async (environment) => {
    const port = await freePort();
    const env = { NODE_ENV: 'production', PORT: String(port), ...environment };
    const args = [...flags, fileURLToPath(SERVICE_MAIN), 'start'];
    return startedProcess(args, { env, banner: BANNER, url: `http://127.0.0.1:${port}/healthz` });
  };
  let made = 0;
  const starts = {
    async [BARE]() {
      const port = await freePort();
      return startedProcess([FLOOR, 'bare', port], { banner: 'started', url: `http://127.0.0.1:${port}/healthz` });
    },
    [PGLITE]: () => startedProcess([FLOOR, 'pglite', join(known, 'database')], { banner: 'started' }),
    [FIRST]: () => service({ DATA_DIR: join(folder, `new-${++made}`) }),
    [SECOND]: () => service({ DATA_DIR: known }),
    [SERVERS_FIRST]: async () => service(onServers(await newDatabase(postgres.url, `new_${++made}`))),
    [SERVERS_SECOND]: () => service(onServers(postgres.url)),
  };
  const run = async ({ name }) => {
    const { stop, bannerMs, answerMs, cpuMs, rss, peakRss } = await starts[name]();
    await stop();
    return { bannerMs, ...(answerMs && { answerMs }), cpuMs, rssMb: rss / MB, peakMb: peakRss / MB };
  };
  try {
    // What starts for the second time has started before.
    for (const name of [SECOND, SERVERS_SECOND]) await run({ name });
    const workload = { name: WORKLOAD, contestants: NAMES.map((name) => ({ name })) };
    const figures = await inRounds({ rounds, workloads: [workload], progress, measure: run });
    const versions = {
      fastify: versionOf('fastify', import.meta.url),
      pglite: versionOf('@electric-sql/pglite', import.meta.url),
    };
    return { versions: { ...versions, postgresql: postgres.version, redis: redis.version }, rounds, figures };
  } finally {
    await postgres.stop();
    redis.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export function report({ rounds, figures }) {
  const cells = createCells(figures);
  const of = (field, name) => cells.spread(field, WORKLOAD, name);
  const kind = (name) => (FLOORS.includes(name) ? 'floor' : 'ours');
  return {
    title: 'The service: its start',
    markdown: `
\`node dist/main.js start\` of \`apps/communication-api\`, from the spawn of the process until it has printed its banner,
and until \`/healthz\` answers. *CPU ms* and memory are those of the process at that moment: resident memory then, and
its peak until then. Median (least–most) of ${rounds} rounds in which all take turns, each start in a fresh process.

- *First time* begins with an empty data directory or an empty database. The embedded database then comes from the
  template of the build, and a demonstration is made. *Second time* is the next start.
- With PostgreSQL and Redis, both servers run already. Their memory is not part of the figures.
- The first floor is a process with a bare Fastify. The second floor opens the embedded database of *second time* with
  PGlite alone, and asks it for one row.

${table(
  ['', 'ms until the banner', 'ms until the answer', 'CPU ms', 'MB then', 'MB at the peak'],
  NAMES.filter((name) => figures[WORKLOAD][name] !== undefined).map((name) => [
    FLOORS.includes(name) ? name : `**${name}**`,
    ...['bannerMs', 'answerMs', 'cpuMs', 'rssMb', 'peakMb'].map((field) =>
      field === 'answerMs' && name === PGLITE ? '' : show(of(field, name)),
    ),
  ]),
)}`,
    targets: [
      ...targetRow(`${SECOND}: ms until the banner`, of('bannerMs', SECOND), atMost(MOST_MS, whole(MOST_MS)), show),
      ...targetRow(`${SECOND}: MB`, of('rssMb', SECOND), atMost(MOST_MB), show),
    ],
    chart: {
      title: 'Time until the banner',
      unit: 'milliseconds',
      scale: 'linear',
      better: 'less',
      panels: [{ title: '', bars: NAMES.flatMap((name) => bar(name, kind(name), of('bannerMs', name))) }],
    },
  };
}

const show = ({ median, least, most }) => `${whole(median)} (${whole(least)}–${whole(most)})`;
