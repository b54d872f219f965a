/** The compose file, the Dockerfile and the Caddyfile fit together, and the settings that they give are right. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { describeVariables, readConfig } from '../../src/config.ts';
import {
  commandsOf,
  deployFile,
  deployText,
  dockerInstructions,
  listOf,
  ROOT,
  servicePage,
} from '../support/deploy-files.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface ComposeService {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly command?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly ulimits?: Readonly<Record<string, number>>;
  readonly stop_grace_period?: string;
  readonly secrets?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: unknown;
}
interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly networks: Readonly<Record<string, { ipam?: { config: { subnet: string }[] }; internal?: boolean } | null>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const folder = temporaryFolder();

/** The file `.env` as the commands of the page make it, and the folder `secrets` beside it. */
const variables: Readonly<Record<string, string>> = (() => {
  const block = commandsOf('production.md').find((text) => text.includes('> .env')) ?? '';
  execFileSync('sh', ['-e', '-c', block], { cwd: folder });
  const file = join(folder, '.env');
  for (const each of [file, join(folder, 'secrets')]) expect(statSync(each).mode & 0o077).toBe(0);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).replaceAll('"', '')]),
  );
})();

/** What compose does with `${NAME:?message}` and `${NAME:-default}`. */
const text = deployText('compose.yaml').replace(/\$\{(\w+):([?-])([^}]*)\}/g, (_, name: string, kind, rest: string) => {
  const value = variables[name];
  if (value === undefined && kind === '?') throw new Error(`${name}: the page does not set it (${rest})`);
  return value ?? rest;
});
const compose = parse(text, { merge: true }) as Compose;
const { services } = compose;
const [first, second] = [services['api-1'], services['api-2']] as [ComposeService, ComposeService];
const proxy = services.proxy as ComposeService;
const VARIABLES = describeVariables().map(({ name }) => name);
/** With those of secrets in files. */
const NAMES = [...VARIABLES, ...describeVariables().flatMap(({ name, isSecret }) => (isSecret ? `${name}_FILE` : []))];
const instructions = dockerInstructions();
const imageEnvironment = Object.fromEntries(
  instructions
    .filter(({ name }) => name === 'ENV')
    .flatMap(({ rest }) => rest.split(' '))
    .map((pair) => pair.split('=')),
) as Record<string, string>;

/** The file that a path in a container leads to, if the container has that secret. */
function secretFile({ secrets = [] }: ComposeService, path = ''): string {
  const name = path.replace('/run/secrets/', '');
  expect(secrets).toContain(name);
  return join(folder, compose.secrets[name]?.file ?? '');
}

describe('the processes', () => {
  const strings = Object.fromEntries(
    Object.entries({ ...imageEnvironment, ...first.environment }).map(([key, value]) => {
      const text = String(value ?? '');
      return [key, key.endsWith('_FILE') ? secretFile(first, text) : text];
    }),
  );
  const config = readConfig(strings);

  test('are two of one image, with settings that the service accepts', () => {
    expect(second).toEqual(first);
    expect(first.build).toEqual({
      context: '../../../..',
      dockerfile: 'apps/communication-api/docs/deploy/Dockerfile',
    });
    expect(Object.keys(strings).filter((name) => !NAMES.includes(name) && name !== 'NODE_ENV')).toEqual([]);
    expect(config).toMatchObject({ BASE_URL: 'https://api.example.com', AUTH_URL: 'https://api.example.com' });
    expect(config).toMatchObject({ EGRESS_POLICY: 'public', HOST: '0.0.0.0', ADMIN_HOST: '0.0.0.0' });
    expect(config.SECRET_KEYS?.map(({ key }) => key.length)).toEqual([32]);
    const { hostname, password } = new URL(config.DATABASE_URL ?? '');
    const { postgres } = services as { readonly postgres: ComposeService };
    const passwordFile = secretFile(postgres, postgres.environment?.POSTGRES_PASSWORD_FILE);
    expect([hostname, password]).toEqual(['postgres', readFileSync(passwordFile, 'utf8').trimEnd()]);
  });

  test('have their secrets in files, which any user of a container can read', () => {
    expect(Object.keys(compose.secrets).sort()).toEqual(['database_url', 'postgres_password', 'secret_keys']);
    for (const { file } of Object.values(compose.secrets))
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o444);
    expect(Object.keys(strings).filter((name) => /^(DATABASE_URL|SECRET_KEYS)$/.test(name))).toEqual([]);
  });

  test('can write to /tmp only, as a user without rights, and leave no memory dump', () => {
    expect(first).toMatchObject({ read_only: true, cap_drop: ['ALL'], ulimits: { core: 0 } });
    expect(first.security_opt).toEqual(['no-new-privileges:true']);
    expect(first.volumes).toBeUndefined();
    expect(instructions.findLast(({ name }) => name === 'USER')?.rest).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    const [, megabytes] = /^\/tmp:size=(\d+)m,/.exec(first.tmpfs?.[0] ?? '') ?? [];
    expect(Number(megabytes) * 2 ** 20).toBeGreaterThan(config.SPOOL_MAX_BYTES);
  });

  test('have the time to end', () => {
    const ms = Number.parseInt(first.stop_grace_period ?? '', 10) * 1_000;
    expect(ms).toBeGreaterThan(config.SHUTDOWN_DELAY_MS + config.DRAIN_MS + 15_000);
    expect(config.DRAIN_MS).toBeGreaterThan(config.SEND_TIMEOUT_MS);
  });

  test('trust the proxy, and begin after the servers that they need', () => {
    expect(config.TRUSTED_PROXIES).toEqual([compose.networks.front?.ipam?.config[0]?.subnet]);
    expect(Object.entries(services).filter(([, { networks }]) => networks.includes('front'))).toHaveLength(3);
    for (const [name, { condition }] of Object.entries(first.depends_on ?? {})) {
      expect(condition).toBe('service_healthy');
      expect(services[name]?.healthcheck, name).toBeDefined();
    }
  });
});

describe('the others', () => {
  test('have exact versions, and so has the image', () => {
    const images = Object.values(services).map(({ image }) => image);
    expect(images.filter((image) => image !== 'communication-api' && !/:\d+\.\d+(\.\d+)?$/.test(image))).toEqual([]);
    const bases = instructions.filter(({ name }) => name === 'FROM').map(({ rest }) => rest.split(' ')[0]);
    expect(new Set(bases).size).toBe(1);
    expect(bases[0]).toMatch(/^node:\d+\.\d+\.\d+-/);
  });

  test('only the proxy is reached from outside, and the servers reach nothing', () => {
    const open = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
    expect(open.map(([name]) => name)).toEqual(['proxy']);
    expect(compose.networks.back).toEqual({ internal: true });
    expect(services.postgres?.networks).toEqual(['back']);
  });

  test('mount what exists, and nothing else of this machine', () => {
    const mounts = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.map((each) => each.split(':')[0] ?? ''),
    );
    const files = mounts.filter((path) => /^[./]/.test(path));
    expect(files).toEqual(['./Caddyfile']);
    for (const path of files) expect(existsSync(deployFile(path))).toBe(true);
    expect(mounts.filter((path) => !files.includes(path)).sort()).toEqual(Object.keys(compose.volumes).sort());
  });
});

describe('the proxy', () => {
  const caddyfile = deployText('Caddyfile');
  const value = (name: string): string => new RegExp(`^\\s*${name} (\\S+)`, 'm').exec(caddyfile)?.[1] ?? '';

  test('knows the hosts and the ports of the processes', () => {
    const [port = '', adminPort = ''] = instructions.find(({ name }) => name === 'EXPOSE')?.rest.split(' ') ?? [];
    expect([port, adminPort]).toEqual([imageEnvironment.PORT, imageEnvironment.ADMIN_PORT]);
    expect(proxy.environment?.PROCESSES).toBe(`api-1:${port} api-2:${port}`);
    expect(proxy.environment?.HOSTS).toBe(new URL(variables.BASE_URL ?? '').host);
    expect([value('health_port'), value('health_uri')]).toEqual([adminPort, '/readyz']);
    expect(listOf(instructions, 'HEALTHCHECK').join(' ')).toContain(`:${adminPort}/livez`);
    for (const name of caddyfile.matchAll(/\{\$(\w+)\}/g))
      expect(Object.keys(proxy.environment ?? {})).toContain(name[1]);
  });

  test('notices that a process is about to end before it does', () => {
    const intervalMs = Number.parseInt(value('health_interval'), 10) * 1_000;
    expect(Number(first.environment?.SHUTDOWN_DELAY_MS)).toBeGreaterThan(2 * intervalMs);
  });
});

test('the commands of the page build what the Dockerfile builds', () => {
  const ran = instructions
    .filter(({ name, rest }) => name === 'RUN' && /^n(pm|ode) /.test(rest))
    .map(({ rest }) => rest)
    .filter((command) => !command.includes('sbom'));
  const block = commandsOf('production.md').find((each) => each.includes('npm ci')) ?? '';
  const written = block
    .trim()
    .split('\n')
    .filter((line) => /^n(pm|ode) /.test(line));
  expect([...written].sort()).toEqual([...ran].sort());
  expect(written.at(-1)).toBe('npm ci --omit=dev --ignore-scripts');
});

test('the commands of the page make the settings of the unit', () => {
  const folder = temporaryFolder();
  const block = commandsOf('production.md').find((each) => each.includes('/etc/communication-api/env')) ?? '';
  const here = block
    .replace(/^useradd .*\n/m, '')
    .replaceAll(/ (?=\/(?:etc|usr)\/)/g, ` ${folder}`)
    .replace('apps/communication-api/docs', `${ROOT}/apps/communication-api/docs`);
  execFileSync('mkdir', ['-p', join(folder, 'etc/systemd/system'), join(folder, 'usr/local/bin')]);
  execFileSync('sh', ['-e', '-c', here]);
  expect(statSync(join(folder, 'etc/communication-api')).mode & 0o077).toBe(0);
  expect(existsSync(join(folder, 'etc/systemd/system/communication-api@.service'))).toBe(true);
  const pathOf = (name: string) => join(folder, 'etc/communication-api', name);
  const file = pathOf('env');
  const [DATABASE_URL_FILE, SECRET_KEYS_FILE] = [pathOf('database-url'), pathOf('secret-keys')];
  for (const each of [file, DATABASE_URL_FILE, SECRET_KEYS_FILE]) expect(statSync(each).mode & 0o077).toBe(0);
  appendFileSync(file, "PROVIDERS='./a b#c.mjs'\n");
  const given = environmentOf(folder, {});
  expect(given).toMatchObject({ DATABASE_URL_FILE, SECRET_KEYS_FILE, PROVIDERS: './a b#c.mjs' });
  for (const own of [{ DATABASE_URL_FILE: '/root/second' }, { PROVIDERS: "./it's $(false) mine.mjs" }])
    expect(environmentOf(folder, own)).toEqual({ ...given, ...own });
  const config = readConfig(given);
  expect(config).toMatchObject({ BASE_URL: 'https://api.example.com', TRUSTED_PROXIES: ['127.0.0.1'] });
  expect(config).toMatchObject({
    DATABASE_URL: 'postgres://mail:PASSWORD@127.0.0.1/mail',
    SECRET_KEYS: [{ id: 'k1' }],
  });
  const proxyBlock = commandsOf('production.md').find((each) => each.includes('caddy.service.d')) ?? '';
  const [, hosts] = /"HOSTS=([^"]+)"/.exec(proxyBlock) ?? [];
  expect(`https://${hosts}`).toBe(given.BASE_URL);
  expect(proxyBlock).toContain('"PROCESSES=127.0.0.11:8080 127.0.0.12:8080"');
});

/** What the command `communication-api` gives to the program, if it is installed in a folder. */
function environmentOf(folder: string, env: Record<string, string>): Record<string, string> {
  const program = join(folder, 'program.mjs');
  writeFileSync(program, 'console.log(JSON.stringify({ ...process.env, args: process.argv.slice(2).join() }))');
  const text = readFileSync(join(folder, 'usr/local/bin/communication-api'), 'utf8')
    .replace('/etc/communication-api', join(folder, 'etc/communication-api'))
    .replace('/usr/bin/node', process.execPath)
    .replace('/opt/communication-api/current/apps/communication-api/dist/main.js', program);
  const out = execFileSync('sh', ['-c', text, 'communication-api', 'doctor', 'a b'], { encoding: 'utf8', env });
  expect(JSON.parse(out).args).toBe('doctor,a b');
  return JSON.parse(out);
}

test('the pages name only commands, variables and files that exist', () => {
  const known = new Set([...VARIABLES, ...Object.keys(proxy.environment ?? {})]);
  const page = servicePage('production.md') + servicePage('security.md');
  const named = [...page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, name]) => name as string);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});
