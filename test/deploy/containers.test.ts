/** The files of docs/deploy do what docs/production.md says: each is read and checked. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { CONFIG, config, DEPLOY, type DeployedConfig, MOUNTED_CONFIG, ROOT, textOf } from '../support/deploy-files.ts';
import { runHeadgate, scratchFolder, writeConfig } from '../support/gateway.ts';

const ENV = { API_KEY: 'try-me', REDIS_URL: 'redis://127.0.0.1:1/0' };

/** What the tests read of a service of compose. */
interface Service {
  readonly build: unknown;
  readonly command: unknown;
  readonly environment: object;
  readonly volumes?: readonly string[];
  readonly stop_grace_period: string;
  readonly depends_on: readonly string[];
}
const { services } = parse(textOf('compose.yaml'), { merge: true }) as { services: Record<string, Service> };

type Labels = Readonly<Record<string, string>>;
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
/** What the tests read of the manifests of Kubernetes, by kind. */
interface Manifests {
  readonly ConfigMap: { readonly data: { readonly 'headgate.json': string } };
  readonly Deployment: {
    readonly spec: {
      readonly selector: { readonly matchLabels: Labels };
      readonly template: {
        readonly metadata: { readonly labels: Labels };
        readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] };
      };
    };
  };
  readonly Service: { readonly spec: { readonly selector: Labels } };
  readonly PodDisruptionBudget: { readonly spec: { readonly selector: { readonly matchLabels: Labels } } };
  readonly NetworkPolicy: { readonly spec: { readonly podSelector: { readonly matchLabels: Labels } } };
}
interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly containerPort: number }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts: readonly object[];
}
const manifests = parseAllDocuments(textOf('kubernetes.yaml')).map((document) => document.toJS() as { kind: string });
/** The manifest of a kind. Each kind has one. */
const manifest = <Kind extends keyof Manifests>(kind: Kind) =>
  manifests.find((each) => each.kind === kind) as Manifests[Kind] & { kind: Kind };

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
    ['check', ...command.slice(1, 3).map((each) => (each === MOUNTED_CONFIG ? file : each))],
    scratchFolder(),
    ENV,
  );

describe('the config', () => {
  it('has no fault, and no warning but that other machines reach `admin`', async () => {
    const { code, stderr } = await runHeadgate(['check', '--config', CONFIG], undefined, ENV);
    expect({ code, warnings: stderr.trim().split('\n') }).toEqual({
      code: 0,
      warnings: [expect.stringMatching(/^warning: admin\.host: /)],
    });
  });

  it('without the variables that it names: a fault that names each', async () => {
    const { code, stderr } = await runHeadgate(['check', '--config', CONFIG]);
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
    expect(argumentsOf('CMD')).toEqual(['serve', '--config', MOUNTED_CONFIG, '--watch']);
    expect(instructions.at(-1)?.name).toBe('CMD');
    expect(textOf('Dockerfile')).toMatch(/^FROM \S+:nonroot$/m);
    expect(instructions.find(({ name }) => name === 'EXPOSE')?.rest).toBe(`${config.listen.port} ${config.admin.port}`);
    expect((await checked(argumentsOf('CMD'), CONFIG)).code).toBe(0);
  });

  it('asks the gateway itself for its health', async () => {
    const command = argumentsOf('HEALTHCHECK');
    expect(command).toEqual([...argumentsOf('ENTRYPOINT'), 'health', '--config', MOUNTED_CONFIG]);
    const flags = command.slice(3).map((each) => (each === MOUNTED_CONFIG ? CONFIG : each));
    // The command is right, and nothing listens.
    expect((await runHeadgate(['health', ...flags], undefined, ENV)).code).toBe(1);
  });
});

describe('compose', () => {
  it('runs two gateways of the image with the variables of the config, and time to stop', () => {
    const gateways = Object.entries(services).filter(([name]) => name.startsWith('gateway'));
    expect(gateways.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2']);
    for (const [, service] of gateways) {
      expect(service.build).toEqual({ context: '../..', dockerfile: 'docs/deploy/Dockerfile' });
      expect(Object.keys(service.environment)).toEqual(Object.keys(ENV));
      expect(service.volumes).toEqual([`./config:${dirname(MOUNTED_CONFIG)}:ro`]);
      expect(Number.parseInt(service.stop_grace_period, 10) * 1_000).toBeGreaterThan(
        config.shutdownDelayMs + config.drainMs + 2_000,
      );
      for (const needed of service.depends_on) expect(Object.keys(services)).toContain(needed);
    }
    expect(services.redis?.command).toEqual(expect.arrayContaining(['--maxmemory-policy', 'noeviction']));
  });

  it('the folder that the gateways see has only the config, so no key of the proxy', () => {
    expect(dirname(CONFIG)).toBe(join(DEPLOY, 'config'));
    expect(readdirSync(dirname(CONFIG))).toEqual([basename(MOUNTED_CONFIG)]);
  });

  it('names hosts and ports that exist', () => {
    const hosts = Object.keys(services);
    const scraped: string[] = parse(textOf('prometheus.yml')).scrape_configs[0].static_configs[0].targets;
    expect(scraped).toEqual([`gateway-1:${config.admin.port}`, `gateway-2:${config.admin.port}`]);
    const servers = [...textOf('haproxy.cfg').matchAll(/^ {2}server \S+ (\S+):(\d+)/gm)].map(([, host, port]) => [
      host,
      port,
    ]);
    expect(servers).toEqual(['gateway-1', 'gateway-2'].map((host) => [host, String(config.listen.port)]));
    const { hostname, port } = new URL(config.upstream);
    expect(hosts).toContain(hostname);
    expect(textOf('upstream.mjs')).toContain(`?? ${port}`);
    for (const { volumes = [] } of Object.values(services)) {
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
    expect(container.volumeMounts).toContainEqual(expect.objectContaining({ mountPath: dirname(MOUNTED_CONFIG) }));
  });

  it('asks paths that the gateway has, on its ports, and waits for its end', () => {
    const own = JSON.parse(manifest('ConfigMap').data['headgate.json']) as DeployedConfig;
    const { listen, admin, shutdownDelayMs, drainMs } = own;
    expect(container.ports.map(({ containerPort }) => containerPort)).toEqual([listen.port, admin.port]);
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
