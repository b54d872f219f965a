/** Secrets that a config refers to: `{ "env": "NAME" }` and `{ "file": "PATH" }`. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Overrides, parseConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { configSchema } from '../../src/config/schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => vi.stubEnv('HG_UNSET', undefined));
afterEach(() => vi.unstubAllEnvs());

const HASH = createHash('sha256').update('s3cret').digest('hex');
const source = join(folder, 'headgate.json');
const parse = (config: unknown, overrides: Overrides = {}) => parseConfig(JSON.stringify(config), source, overrides);

function issuesOf(config: unknown, overrides: Overrides = {}): string[] {
  try {
    parse(config, overrides);
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path, reason }) => `${path}: ${reason}`);
    throw error;
  }
  return [];
}

const postgresOf = (file: object) => {
  const { store } = parse(file);
  if (typeof store === 'string') throw new Error(store);
  return store.postgres;
};

/** Every place that has a secret, with a good secret. */
const places: [path: string, secret: string, put: (value: unknown) => object, get: (file: object) => unknown][] = [
  [
    'keys[0].token',
    's3cret',
    (token) => ({ keys: [{ token, application: 'a' }] }),
    (file) => parse(file).keys.map(({ sha256 }) => sha256 === HASH && 's3cret')[0],
  ],
  [
    'keys[0].sha256',
    HASH,
    (sha256) => ({ keys: [{ sha256, application: 'a' }] }),
    (file) => parse(file).keys[0]?.sha256,
  ],
  ['store', 'redis://:p4ss@h:1/2', (store) => ({ store }), (file) => parse(file).store],
  [
    'store.postgres.url',
    'postgres://u:p4ss@h/d',
    (url) => ({ store: { postgres: { url } } }),
    (file) => postgresOf(file).url,
  ],
  [
    'store.postgres.password',
    's3cret',
    (password) => ({ store: { postgres: { url: 'postgres://u@h/d', password } } }),
    (file) => postgresOf(file).password,
  ],
  ['idempotency.secret', 's3cret', (secret) => ({ idempotency: { secret } }), (file) => parse(file).idempotency.secret],
  [
    'decisions.secret',
    'a-secret-of-receipts-0123456789abcdef',
    (secret) => ({ decisions: { secret } }),
    (file) => parse(file).decisions?.secret,
  ],
];

describe.each(places)('%s', (path, secret, put, get) => {
  it('is read from the environment, exactly', () => {
    vi.stubEnv('HG_SECRET', secret);
    expect(get(put({ env: 'HG_SECRET' }))).toBe(secret);
  });

  it.each(['', '\n', '\r\n'])('is read from a file beside the config, without its last line break: %j', (end) => {
    writeFileSync(join(folder, 'secret'), `${secret}${end}`);
    expect(get(put({ file: 'secret' }))).toBe(secret);
    expect(get(put({ file: join(folder, 'secret') }))).toBe(secret);
  });

  it('a missing or an empty variable is a fault that names the place and the variable', () => {
    vi.stubEnv('HG_EMPTY', '');
    expect(issuesOf(put({ env: 'HG_UNSET' }))).toEqual([`${path}: the environment variable HG_UNSET is not set`]);
    expect(issuesOf(put({ env: 'HG_EMPTY' }))).toEqual([`${path}: the environment variable HG_EMPTY is empty`]);
  });

  it('a missing or an empty file is a fault that names the place and the file', () => {
    writeFileSync(join(folder, 'empty'), '\n');
    expect(issuesOf(put({ file: 'none' }))).toEqual([`${path}: the file "none" does not exist`]);
    expect(issuesOf(put({ file: 'empty' }))).toEqual([`${path}: the file "empty" is empty`]);
    expect(issuesOf(put({ file: '.' }))).toEqual([`${path}: the file "." cannot be read (EISDIR)`]);
  });

  it('a file that is no regular one is a fault, and is not waited for: a pipe, a device, a huge file', () => {
    const [pipe, huge] = [join(folder, 'pipe'), join(folder, 'huge')];
    if (!existsSync(pipe)) execFileSync('mkfifo', [pipe]);
    closeSync(openSync(huge, 'w'));
    truncateSync(huge, 1_048_577);
    expect(issuesOf(put({ file: 'pipe' }))).toEqual([`${path}: the file "pipe" is not a regular file`]);
    expect(issuesOf(put({ file: '/dev/zero' }))).toEqual([`${path}: the file "/dev/zero" is not a regular file`]);
    expect(issuesOf(put({ file: 'huge' }))).toEqual([`${path}: the file "huge" is larger than 1 MiB`]);
  });

  it('a link to a file is followed, as secrets of Kubernetes are', () => {
    writeFileSync(join(folder, 'target'), `${secret}\n`);
    rmSync(join(folder, 'link'), { force: true });
    symlinkSync('target', join(folder, 'link'));
    expect(get(put({ file: 'link' }))).toBe(secret);
  });

  it.each(['$' + '{API_KEY}', '$' + '{API_KEY:-d3fault}', '$API_KEY', '%API_KEY%'])(
    'a text that looks like a variable is a fault that says what to write: %s',
    (text) => {
      const issues = issuesOf(put(text));
      expect(issues).toContain(`${path}: a variable in a text is not replaced: write { "env": "API_KEY" }`);
      expect(issues.join()).not.toContain('d3fault');
    },
  );

  it('a reference that is malformed is a fault', () => {
    const or =
      path === 'store'
        ? 'must be a string, { "env": "NAME" }, { "file": "PATH" } or { "postgres": { "url": … } }'
        : 'must be a string, or { "env": "NAME" } or { "file": "PATH" }';
    expect(issuesOf(put(['x']))).toEqual([`${path}: ${or}, got an array`]);
    expect(issuesOf(put({}))).toEqual([`${path}: needs exactly one of env and file`]);
    expect(issuesOf(put({ env: 'A', file: 'B' }))).toEqual([`${path}: needs exactly one of env and file`]);
    expect(issuesOf(put({ evn: 'HG_UNSET' }))).toContain(`${path}.evn: unknown option, did you mean "env"?`);
    expect(issuesOf(put({ env: '' }))).toEqual([`${path}.env: must not be empty`]);
  });

  it('no fault shows a secret, even in the place of a name', () => {
    for (const reference of [{ env: 'hg-s3cret value' }, { env: ['s3cret'] }, { file: ['s3cret'] }]) {
      const issues = issuesOf(put(reference));
      expect(issues.length).toBeGreaterThan(0);
      expect(issues.join()).not.toContain('s3cret');
    }
  });
});

it('a secret that was read and is wrong: the fault names the variable or the file, and does not show the secret', () => {
  vi.stubEnv('HG_SECRET', 'two w0rds');
  writeFileSync(join(folder, 'url'), 'mysql://:p4ss@h\n');
  expect(issuesOf({ keys: [{ token: { env: 'HG_SECRET' }, application: 'a' }], store: { file: 'url' } })).toEqual([
    'keys[0].token: must be 1 to 1,024 printable ASCII characters without spaces (from the environment variable HG_SECRET)',
    'store: must be memory, redis://[user:password@]host:port/db, rediss://…, redis-cluster://host:port,host:port or postgres://user[:password]@host:port/database (from the file "url")',
  ]);
});

it('a variable in a part of a text is a fault, because it would be taken letter by letter', () => {
  expect(issuesOf({ store: 'redis://:$' + '{REDIS_PASSWORD}@s3cret:6379' })).toEqual([
    'store: the variable REDIS_PASSWORD in a text is not replaced: put the whole text into one variable, and write { "env": "NAME" }',
  ]);
});

it('a secret that was read may look like a variable', () => {
  vi.stubEnv('HG_SECRET', '$API_KEY');
  expect(parse({ idempotency: { secret: { env: 'HG_SECRET' } } }).idempotency.secret).toBe('$API_KEY');
});

it('the same key twice is found in what the references stand for', () => {
  vi.stubEnv('HG_SECRET', 's3cret');
  const keys = [
    { token: { env: 'HG_SECRET' }, application: 'a' },
    { sha256: HASH, application: 'a' },
  ];
  expect(issuesOf({ keys })).toEqual(['keys[1]: is the same key as keys[0]']);
});

it('--store wins, so that the variable of the file need not be set', () => {
  expect(parse({ store: { env: 'HG_UNSET' } }, { store: 'memory' }).store).toBe('memory');
  expect(issuesOf({}, { store: '$REDIS_URL' })).toContain(
    '--store: a variable in a text is not replaced: write { "env": "REDIS_URL" }',
  );
});

it('other mistakes of the file are listed beside those of references', () => {
  expect(issuesOf({ store: { env: 'HG_UNSET' }, drainMs: -1 })).toEqual([
    'store: the environment variable HG_UNSET is not set',
    'drainMs: must be at least 0, got -1',
  ]);
});

it('the schema alone accepts a reference in the place of a secret', () => {
  expect(configSchema.safeParse({ store: { env: 'A' }, idempotency: { secret: { file: 'f' } } }).success).toBe(true);
});
