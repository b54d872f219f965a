import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { configSchema } from '../../src/config/schema.ts';
import { CONFIG, config, DEPLOY, type DeployedConfig, MOUNTED_CONFIG, ROOT, textOf } from '../support/deploy-files.ts';
import { runHeadgate, scratchFolder, writeConfig } from '../support/gateway.ts';

const DEFAULTS = configSchema.parse({});
const ENV = { API_KEY: 'try-me', REDIS_URL: 'redis://127.0.0.1:1/0' };

const page = readFileSync(join(ROOT, 'apps/gateway/docs/production.md'), 'utf8');

/** What the tests read of a service of compose. */
interface Service {
  readonly image: string;
  readonly pull_policy: string;
  readonly tmpfs: readonly string[];
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
        readonly spec: {
          readonly terminationGracePeriodSeconds: number;
          readonly containers: readonly [Container];
          readonly volumes: readonly Volume[];
        };
      };
    };
  };
  readonly Service: { readonly spec: { readonly selector: Labels } };
  readonly PodDisruptionBudget: { readonly spec: { readonly selector: { readonly matchLabels: Labels } } };
  readonly NetworkPolicy: { readonly spec: { readonly podSelector: { readonly matchLabels: Labels } } };
}
interface Volume {
  readonly name: string;
  readonly emptyDir?: { readonly sizeLimit: string };
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

  it('lets a request finish whose response takes as long to begin as it may', () => {
    for (const { drainMs } of [config, JSON.parse(manifest('ConfigMap').data['headgate.json']) as DeployedConfig])
      expect(drainMs).toBeGreaterThan(DEFAULTS.upstreamTimeoutMs);
  });

  it('any value does for `check`', async () => {
    const [, command = ''] = /^(?:(REDIS_URL=\S+ API_KEY=\S+) )headgate check/m.exec(page) ?? [];
    const env = Object.fromEntries(command.split(' ').map((each) => each.split('=')));
    expect(Object.keys(env).sort()).toEqual(Object.keys(ENV).sort());
    expect((await runHeadgate(['check', '--config', CONFIG], undefined, env)).code).toBe(0);
  });

  it('without the variables that it names: a fault that names each', async () => {
    const { code, stderr } = await runHeadgate(['check', '--config', CONFIG]);
    expect(code).toBe(2);
    expect(stderr).toContain('API_KEY');
    expect(stderr).toContain('REDIS_URL');
  });
});

describe('the image', () => {
  it('needs only the packages that npm has installed in its context', () => {
    expect(instructions.filter(({ name }) => name === 'COPY').map(({ rest }) => rest)).toEqual([
      'node_modules node_modules',
    ]);
    expect(instructions.find(({ name }) => name === 'WORKDIR')?.rest).toBe('/app');
    expect(instructions.some(({ name }) => name === 'RUN')).toBe(false);
  });

  it('serves the config, as a user that is not root', async () => {
    const [node, file] = argumentsOf('ENTRYPOINT');
    expect([node, file]).toEqual(['/nodejs/bin/node', '/app/node_modules/headgate-gateway/dist/headgate.cjs']);
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
      expect(service).toMatchObject({ image: 'headgate', pull_policy: 'never' });
      expect(Object.keys(service.environment)).toEqual(Object.keys(ENV));
      expect(service.volumes).toEqual([`./config:${dirname(MOUNTED_CONFIG)}:ro`]);
      expect(Number.parseInt(service.stop_grace_period, 10) * 1_000).toBeGreaterThan(
        config.shutdownDelayMs + config.drainMs + 3_000,
      );
      const [, megabytes] = /^\/tmp:size=(\d+)m$/.exec(service.tmpfs[0] ?? '') ?? [];
      expect(Number(megabytes) * 2 ** 20).toBeGreaterThan(DEFAULTS.maxBufferedBytes);
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
      for (const file of files.filter((path) => path !== './tls')) expect(existsSync(join(DEPLOY, file))).toBe(true);
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
    expect(pod.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(shutdownDelayMs + drainMs + 3_000);
    const { emptyDir } = pod.spec.volumes.find(({ name }) => name === 'tmp') as Volume;
    expect(Number.parseInt(emptyDir?.sizeLimit ?? '', 10) * 2 ** 30).toBeGreaterThan(DEFAULTS.maxBufferedBytes);
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
