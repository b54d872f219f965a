/** The files of docs/deploy do what docs/production.md says: each is read and checked, and together they serve. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { basename, dirname, join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { afterFile } from '../../support/after-file.ts';
import { findOrInstall } from '../../support/find-program.ts';
import {
  type Config,
  freePort,
  type Gateway,
  runHeadgate,
  scratchFolder,
  serve,
  writeConfig,
} from '../../support/gateway.ts';
import { eventually, send } from '../../support/raw-http.ts';
import { startRedis } from '../../support/redis-server.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const DEPLOY = join(ROOT, 'docs/deploy');
const ENV = { API_KEY: 'try-me', REDIS_URL: 'redis://127.0.0.1:1/0' };
/** Where every file expects the config. */
const CONFIG_FILE = '/etc/headgate/headgate.json';

const textOf = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');
const config = JSON.parse(textOf('headgate.json')) as Config & Record<'listen' | 'admin', { port: number }>;
const compose = parse(textOf('compose.yaml'), { merge: true });
interface Service {
  readonly build: unknown;
  readonly environment: object;
  readonly volumes: readonly string[];
  readonly stop_grace_period: string;
  readonly depends_on: readonly string[];
}
// biome-ignore lint/suspicious/noExplicitAny: manifests of Kubernetes, whose types are not here
const manifests = parseAllDocuments(textOf('kubernetes.yaml')).map((document) => document.toJS() as any);
const manifest = (kind: string) => manifests.find((each) => each.kind === kind);

/** The instructions of the Dockerfile, each with its arguments on one line. */
const instructions = textOf('Dockerfile')
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ name: line.split(' ')[0] as string, rest: line.slice(line.indexOf(' ') + 1) }));
const argumentsOf = (name: string): string[] =>
  JSON.parse(/\[.*\]/.exec(instructions.find((each) => each.name === name)?.rest ?? '')?.[0] ?? 'null');

/** Runs `check` with the command of a container, whose config is at `file` here. */
const checked = (command: readonly string[], file: string) =>
  runHeadgate(
    ['check', ...command.slice(1, 3).map((each) => (each === CONFIG_FILE ? file : each))],
    scratchFolder(),
    ENV,
  );

describe('the config', () => {
  it('has no fault, and no warning but that other machines reach `admin`', async () => {
    const { code, stderr } = await runHeadgate(['check', '--config', join(DEPLOY, 'headgate.json')], undefined, ENV);
    expect({ code, warnings: stderr.trim().split('\n') }).toEqual({
      code: 0,
      warnings: [expect.stringMatching(/^warning: admin\.host: /)],
    });
  });

  it('without the variables that it names: a fault that names each', async () => {
    const { code, stderr } = await runHeadgate(['check', '--config', join(DEPLOY, 'headgate.json')]);
    expect(code).toBe(2);
    expect(stderr).toContain('API_KEY');
    expect(stderr).toContain('REDIS_URL');
  });
});

/** What COPY does: the last path is the target, a folder if it ends with a slash. */
function copyInto(folder: string, paths: readonly string[]): void {
  const target = join(folder, paths.at(-1) as string);
  for (const path of paths.slice(0, -1)) {
    const to = target.endsWith('/') ? join(target, basename(path)) : target;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(ROOT, path), to, { recursive: true });
  }
}

describe('the image', () => {
  it('copies files that exist, and its build makes a process that starts', async () => {
    const folder = scratchFolder();
    const build = instructions.slice(
      0,
      instructions.findLastIndex(({ name }) => name === 'FROM'),
    );
    for (const { name, rest } of build) {
      if (name === 'COPY') copyInto(folder, rest.split(' '));
      else if (rest.startsWith('npm ci')) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      else if (name === 'RUN') execFileSync('sh', ['-c', rest], { cwd: folder, stdio: 'pipe' });
    }
    for (const file of ['headgate.cjs', 'THIRD-PARTY-LICENSES.txt'])
      expect(existsSync(join(folder, 'dist', file))).toBe(true);
    const version = execFileSync(process.execPath, [join(folder, 'dist/headgate.cjs'), '--version'], {
      encoding: 'utf8',
    });
    expect(version.trim()).toBe(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version);
  }, 120_000);

  it('serves the config, as a user that is not root', async () => {
    const [node, file] = argumentsOf('ENTRYPOINT');
    expect([node, file]).toEqual(['/nodejs/bin/node', '/app/headgate.cjs']);
    expect(argumentsOf('CMD')).toEqual(['serve', '--config', CONFIG_FILE, '--watch']);
    expect(instructions.at(-1)?.name).toBe('CMD');
    expect(textOf('Dockerfile')).toMatch(/^FROM \S+:nonroot$/m);
    expect(instructions.find(({ name }) => name === 'EXPOSE')?.rest).toBe(`${config.listen.port} ${config.admin.port}`);
    expect((await checked(argumentsOf('CMD'), join(DEPLOY, 'headgate.json'))).code).toBe(0);
  });

  it('asks the gateway itself for its health', async () => {
    const command = argumentsOf('HEALTHCHECK');
    expect(command).toEqual([...argumentsOf('ENTRYPOINT'), 'health', '--config', CONFIG_FILE]);
    const flags = command.slice(3).map((each) => (each === CONFIG_FILE ? join(DEPLOY, 'headgate.json') : each));
    // The command is right, and nothing listens.
    expect((await runHeadgate(['health', ...flags], undefined, ENV)).code).toBe(1);
  });
});

describe('compose', () => {
  it('runs two gateways of the image with the variables of the config, and time to stop', () => {
    const gateways = Object.entries<Service>(compose.services).filter(([name]) => name.startsWith('gateway'));
    expect(gateways.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2']);
    for (const [, service] of gateways) {
      expect(service.build).toEqual({ context: '../..', dockerfile: 'docs/deploy/Dockerfile' });
      expect(Object.keys(service.environment)).toEqual(Object.keys(ENV));
      expect(service.volumes).toEqual([`./:${dirname(CONFIG_FILE)}:ro`]);
      expect(Number.parseInt(service.stop_grace_period, 10) * 1_000).toBeGreaterThan(
        Number(config.shutdownDelayMs) + Number(config.drainMs) + 2_000,
      );
      for (const needed of service.depends_on) expect(Object.keys(compose.services)).toContain(needed);
    }
    expect(compose.services.redis.command).toEqual(expect.arrayContaining(['--maxmemory-policy', 'noeviction']));
  });

  it('names hosts and ports that exist', () => {
    const hosts = Object.keys(compose.services);
    const scraped: string[] = parse(textOf('prometheus.yml')).scrape_configs[0].static_configs[0].targets;
    expect(scraped).toEqual([`gateway-1:${config.admin.port}`, `gateway-2:${config.admin.port}`]);
    const servers = [...textOf('haproxy.cfg').matchAll(/^ {2}server \S+ (\S+):(\d+)/gm)].map(([, host, port]) => [
      host,
      port,
    ]);
    expect(servers).toEqual(['gateway-1', 'gateway-2'].map((host) => [host, String(config.listen.port)]));
    const { hostname, port } = new URL(String(config.upstream));
    expect(hosts).toContain(hostname);
    expect(textOf('upstream.mjs')).toContain(`?? ${port}`);
    for (const { volumes = [] } of Object.values<{ volumes?: string[] }>(compose.services)) {
      const files = volumes.map((volume) => volume.split(':')[0] as string).filter((path) => path.startsWith('./'));
      for (const file of files.filter((path) => path !== './tls.pem'))
        expect(existsSync(join(DEPLOY, file))).toBe(true);
    }
  });
});

describe('kubernetes', () => {
  const pod = manifest('Deployment').spec.template;
  const [container] = pod.spec.containers;

  it('has a config without a fault, which the container reads', async () => {
    const file = writeConfig(manifest('ConfigMap').data['headgate.json']);
    const { code, stderr } = await checked(container.args, file);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(container.args).toEqual(argumentsOf('CMD'));
    expect(container.volumeMounts).toContainEqual(expect.objectContaining({ mountPath: dirname(CONFIG_FILE) }));
  });

  it('asks paths that the gateway has, on its ports, and waits for its end', () => {
    const { listen, admin, shutdownDelayMs, drainMs } = JSON.parse(manifest('ConfigMap').data['headgate.json']);
    expect(container.ports.map((port: { containerPort: number }) => port.containerPort)).toEqual([
      listen.port,
      admin.port,
    ]);
    expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'http' });
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'http' });
    expect(pod.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(shutdownDelayMs + drainMs + 2_000);
    const { labels } = pod.metadata;
    for (const selector of [
      manifest('Deployment').spec.selector.matchLabels,
      manifest('Service').spec.selector,
      manifest('PodDisruptionBudget').spec.selector.matchLabels,
      manifest('NetworkPolicy').spec.podSelector.matchLabels,
    ]) {
      expect(labels).toEqual(selector);
    }
  });
});

describe('two gateways behind HAProxy, from these files', () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const adminPorts: number[] = [];
  const files: string[] = [];
  const gateways: Gateway[] = [];
  let httpsPort = 0;
  let own: Config;

  beforeAll(async () => {
    const haproxy = findOrInstall(
      () => ['haproxy', '/usr/sbin/haproxy'].find((command) => runs(command, '-v')),
      'haproxy',
      'These tests need HAProxy: install it, so that haproxy is on the PATH.',
    );
    const redis = await startRedis();
    const upstreamPort = await freePort();
    const upstream = spawn(process.execPath, [join(DEPLOY, 'upstream.mjs')], { env: { PORT: String(upstreamPort) } });
    const ports = [await freePort(), await freePort()];
    adminPorts.push(await freePort(), await freePort());
    httpsPort = await freePort();
    own = { ...config, upstream: `http://127.0.0.1:${upstreamPort}` };
    for (const [i, port] of ports.entries()) {
      files.push(writeConfig({ ...own, ...listeners(port, adminPorts[i] as number) }));
      const env = { API_KEY: 'try-me', REDIS_URL: `redis://127.0.0.1:${redis.port}/0` };
      gateways.push(await serve(['--config', files[i] as string, '--watch'], port, adminPorts[i], env));
    }
    findOrInstall(
      () => (runs('openssl', 'version') ? true : undefined),
      'openssl',
      'These tests need OpenSSL: install it, so that openssl is on the PATH.',
    );
    const folder = scratchFolder();
    const [pem, file] = [join(folder, 'tls.pem'), join(folder, 'haproxy.cfg')];
    // The commands of the page.
    const [commands = ''] = /^openssl .*\ncat .*$/m.exec(readFileSync(join(ROOT, 'docs/production.md'), 'utf8')) ?? [];
    execFileSync('sh', ['-c', commands], { cwd: folder, stdio: 'pipe' });
    let text = textOf('haproxy.cfg').replace(':8443', `127.0.0.1:${httpsPort}`).replace('/etc/haproxy/tls.pem', pem);
    for (const [i, port] of ports.entries()) text = text.replace(`gateway-${i + 1}:8080`, `127.0.0.1:${port}`);
    writeFileSync(file, text);
    execFileSync(haproxy, ['-c', '-q', '-f', file]);
    const proxy = spawn(haproxy, ['-db', '-f', file], { stdio: 'ignore' });
    afterFile(async () => {
      agent.destroy();
      for (const child of [proxy, upstream]) child.kill();
      await Promise.all(gateways.map((gateway) => gateway.stop()));
      await redis.stop();
    });
    await eventually(
      () =>
        ask('/status').then(
          (status) => status === 200,
          () => false,
        ),
      'the proxy and a gateway',
    );
  }, 120_000);

  const listeners = (port: number, adminPort: number) => ({
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
  });

  /** Status of a request through the proxy; 0 if its connection broke. */
  function ask(path: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const headers = { 'x-api-key': 'try-me' };
      const outgoing = request({ host: '127.0.0.1', port: httpsPort, path, headers, agent, rejectUnauthorized: false });
      outgoing.on('error', reject).on('response', (response) => {
        response.resume().on('close', () => resolve(response.complete ? (response.statusCode ?? 0) : 0));
      });
      outgoing.end();
    });
  }

  /** Sends requests on eight connections until `action` is over. Returns how many requests had which status. */
  async function under(action: () => Promise<unknown>): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    let isOver = false;
    const client = async (): Promise<void> => {
      while (!isOver) {
        const status = await ask('/status').catch((error: NodeJS.ErrnoException) => error.code ?? 'error');
        counts[status] = (counts[status] ?? 0) + 1;
      }
    };
    const clients = Array.from({ length: 8 }, client);
    await action();
    isOver = true;
    await Promise.all(clients);
    return counts;
  }

  const metricsOf = async (index: number): Promise<string> =>
    (await send(adminPorts[index] as number, { path: '/metrics' })).text;

  it('share one limit', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 61; i += 1) statuses.push(await ask('/api/v1/chats/1?account_id=acc_1'));
    expect(statuses.filter((status) => status === 200)).toHaveLength(60);
    expect(statuses.at(-1)).toBe(429);
  });

  it('take over a changed config under load without a failed request, and /metrics says so', async () => {
    const counts = await under(async () => {
      for (const [i, file] of files.entries()) {
        const routes = [...(own.routes as unknown[]), { route: 'GET /later' }];
        writeFileSync(
          file,
          JSON.stringify({ ...own, routes, ...listeners(gateways[i]?.port ?? 0, adminPorts[i] as number) }),
        );
      }
      await eventually(
        async () => {
          const pages = await Promise.all([metricsOf(0), metricsOf(1)]);
          return pages.every((page) => page.includes('headgate_config_reloads_total{result="applied"} 1'));
        },
        'the reload of both',
        20_000,
      );
    });
    expect(Object.keys(counts)).toEqual(['200']);
    expect(await ask('/later')).toBe(200);
  }, 60_000);

  it('one of them ends under load without a failed request', async () => {
    const [first] = gateways as [Gateway];
    const counts = await under(async () => {
      first.signal('SIGTERM');
      expect(await first.exited).toEqual({ code: 0, signal: null });
    });
    expect(Object.keys(counts)).toEqual(['200']);
    expect(await ask('/status')).toBe(200);
  }, 60_000);
});

function runs(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
