import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createCertificate } from 'headgate-testbed/certificate';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ImapCredentials } from '../../../src/providers/imap/credentials.ts';
import type { Discovered, MailSettings } from '../../../src/providers/imap/discovery.ts';
import { createImap } from '../../../src/providers/imap/imap.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { cleanUpLater } from '../../support/clean-up.ts';
import { type MailUser, startDovecot } from '../../support/dovecot.ts';
import { freePort } from '../../support/free-port.ts';
import { startRaw } from '../../support/outside-servers.ts';
import { secret } from '../../support/secret.ts';
import { startService } from '../../support/service.ts';
import { startSmtpServer } from '../../support/smtp-server.ts';
import { PlainBrowser } from '../../wizard/plain-browser.ts';

const MINUTE = 60_000;
const REDIRECT = 'https://app.example/cb';

const dovecot = await startDovecot();
const smtp = await startSmtpServer();

/** What the flow finds for the address. */
let found: Discovered;
/** Addresses whose servers were looked for. */
let looked: string[] = [];
const imap = createImap(async (address) => {
  looked.push(address);
  return found;
});
cleanUpLater(() => imap.close());

/** Another provider, for users whose mailbox is at its host. */
const google: Provider = {
  name: 'google',
  title: 'Google',
  supports: new Set(['emails']),
  link: {
    begin: async () => ({}),
    stepOf: () => ({ kind: 'form', name: 'google', title: { en: 'Sign in at Google', de: 'Google' }, fields: [] }),
    submit: async () => ({ kind: 'identified', account: { providerUserId: 'g', name: 'g', credentials: {} } }),
  },
};

const { url, application, rooms } = await startService(
  { PORT: await freePort(), TRUSTED_PROXIES: 'loopback' },
  { providers: [imap, google] },
);
const { id: applicationId, token } = await application();

async function createLink(body: object): Promise<string> {
  const answer = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...('account_id' in body ? {} : { providers: ['imap'] }),
      expires_on: new Date(Date.now() + 10 * MINUTE).toISOString(),
      redirect_uri: REDIRECT,
      ...body,
    }),
  });
  const { link, detail } = (await answer.json()) as { link: string; detail?: string };
  expect(detail).toBeUndefined();
  return new URL(link).pathname;
}

let clients = 0;
let last: PlainBrowser | undefined;
async function opened(body: object = {}, headers: Record<string, string> = {}): Promise<PlainBrowser> {
  const client = new PlainBrowser(url, { 'x-forwarded-for': `192.0.2.${++clients}`, ...headers });
  last = client;
  await client.open(await createLink(body));
  return client;
}

let users = 0;
/** A new user of both servers. */
function newUser(address = `ann${++users}@example.test`): MailUser {
  return smtp.user(address, dovecot.user(address).password);
}

const settingsOf = ({ address }: MailUser): MailSettings => ({
  imap: { host: 'localhost', port: dovecot.imapsPort, encryption: 'tls', user: address },
  smtp: { host: 'localhost', port: smtp.tlsPort, encryption: 'tls', user: address },
});

let user: MailUser;
beforeEach(() => {
  user = newUser();
  found = { kind: 'servers', settings: settingsOf(user) };
  looked = [];
});

const login = (values: object = {}): Record<string, string> => ({ ...user, ...values });
const linked = async (callback: string | undefined) => {
  if (callback === undefined) throw new Error(`No account was linked: ${last?.text}`);
  const id = new URL(callback).searchParams.get('account_id') ?? '';
  const account = await rooms.accounts.find(applicationId, id);
  if (account === undefined) throw new Error(`No account was linked: ${callback}`);
  const { credentials } = rooms.accounts.secretOf(account);
  return { account, credentials: credentials as ImapCredentials };
};
/** The messages at the fields of the page, by field. */
const faultsOn = ({ page }: PlainBrowser): Record<string, string> =>
  Object.fromEntries(
    [...page.html.matchAll(/<p class="fault" id="([^"]+)-fault">([^<]*)</g)].map(([, id = '', text = '']) => [
      id,
      text,
    ]),
  );
/** The faults of a half to which no connection was made. */
const unreachable = (half: 'imap' | 'smtp'): Record<string, string> => ({
  [`field-${half}_host`]: `No ${half.toUpperCase()} server with a valid certificate answers at this host, port and encryption.`,
  [`field-${half}_port`]: 'Check the port, too.',
});

describe('an address and a password', () => {
  test('are enough if the servers are found and both take the login', async () => {
    const client = await opened({ config: { global: { login_hint: user.address } } });
    expect(client.path).toBe('/step/login');
    expect(client.page.html).toContain(`value="${user.address}"`);
    const before = smtp.logins.length;
    const { account, credentials } = await linked(await client.submit('/step/login', login()));
    expect(account).toMatchObject({
      provider: 'imap',
      provider_user_id: user.address,
      name: user.address,
      status: 'running',
      sync: { status: 'completed' },
    });
    const { imap: imapServer, smtp: smtpServer } = settingsOf(user);
    const { password } = user;
    expect(credentials).toEqual({ imap: { ...imapServer, password }, smtp: { ...smtpServer, password } });
    expect(smtp.logins.slice(before)).toEqual([{ user: user.address, secure: true }]);
    expect(dovecot.log()).toContain(`Login: user=<${user.address}>`);
  });

  test('in a link that is made as apps/communication-api/docs/imap.md shows it', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/imap.md'), 'utf8');
    const [, body = ''] = /-d '(\{.*?\n\})'/s.exec(page) ?? [];
    const { expires_on: _, ...example } = JSON.parse(body);
    const client = await opened(example);
    expect(client.page.html).toContain('value="ann@example.org"');
    expect((await linked(await client.submit('/step/login', login()))).account.provider).toBe('imap');
  });

  test('that both servers refuse can be corrected', async () => {
    const client = await opened();
    await client.submit('/step/login', login({ password: secret() }));
    expect([client.path, client.text]).toEqual([
      '/step/login',
      expect.stringContaining('The mail server refuses the address or the password.'),
    ]);
    expect(client.page.html).toContain(`value="${user.address}"`);
    expect((await linked(await client.submit('/step/login', login()))).account.name).toBe(user.address);
  });

  test('in German', async () => {
    const client = await opened({}, { 'accept-language': 'de' });
    expect(client.text).toContain('Postfach verbinden');
    await client.submit('/step/login', login({ password: secret() }));
    expect(client.text).toContain('Der Mailserver lehnt die Adresse oder das Passwort ab.');
  });

  test('with a login that is no address: the server makes it unique', async () => {
    const bob = newUser(`bob${++users}`);
    found = { kind: 'servers', settings: settingsOf(bob) };
    const client = await opened();
    const { account } = await linked(
      await client.submit('/step/login', { address: 'Bob@Example.test', password: bob.password }),
    );
    expect(account).toMatchObject({ provider_user_id: `${bob.address}@localhost`, name: 'Bob@Example.test' });
  });
});

describe('the form with the servers', () => {
  const wrong = (half: 'imap' | 'smtp', change: object): void => {
    const settings = settingsOf(user);
    found = { kind: 'servers', settings: { ...settings, [half]: { ...settings[half], ...change } } };
  };

  test('follows if none were found, with what is usual; the password is kept', async () => {
    const settings = settingsOf(user);
    found = {
      kind: 'guess',
      isKnown: false,
      settings: { imap: { ...settings.imap, host: 'imap.example.test', port: 993 }, smtp: settings.smtp },
    };
    const client = await opened();
    await client.submit('/step/login', login());
    expect([client.path, client.text]).toEqual(['/step/servers', expect.stringContaining('were not found')]);
    expect(client.page.html).toContain('value="imap.example.test"');
    expect(client.page.html).not.toContain(user.password);
    const callback = await client.submit('/step/servers', {
      imap_host: '127.0.0.1',
      imap_port: String(dovecot.imapPort),
      imap_encryption: 'starttls',
      smtp_host: '127.0.0.1',
      smtp_port: String(smtp.port),
      smtp_encryption: 'starttls',
    });
    const { credentials } = await linked(callback);
    expect(credentials).toMatchObject({
      imap: { host: '127.0.0.1', encryption: 'starttls', password: user.password },
      smtp: { host: '127.0.0.1', encryption: 'starttls', password: user.password },
    });
    expect(smtp.logins.at(-1)).toEqual({ user: user.address, secure: true });
  });

  test('follows if DNS leads to another domain: nothing was sent there before the user agrees', async () => {
    found = { kind: 'guess', isKnown: true, settings: settingsOf(user) };
    const client = await opened();
    await client.submit('/step/login', login());
    expect(client.text).toContain('They belong to another domain.');
    expect(dovecot.log()).not.toContain(`user=<${user.address}>`);
    expect((await linked(await client.submit('/step/servers'))).account.name).toBe(user.address);
  });

  test('follows if the user wants it', async () => {
    const client = await opened();
    await client.submit('/step/login', login({ advanced: 'on' }));
    expect(client.path).toBe('/step/servers');
    const { credentials } = await linked(
      await client.submit('/step/servers', {
        imap_encryption: 'none',
        imap_port: String(dovecot.imapPort),
        smtp_encryption: 'none',
        smtp_port: String(smtp.port),
      }),
    );
    expect(credentials.imap.encryption).toBe('none');
    expect(smtp.logins.at(-1)).toEqual({ user: user.address, secure: false });
  });

  test.each(['imap', 'smtp'] as const)(
    'marks host and port of the half that fails (%s), and keeps everything',
    async (half) => {
      wrong(half, { port: Number(await freePort()) });
      const client = await opened();
      await client.submit('/step/login', login());
      expect([client.path, faultsOn(client)]).toEqual(['/step/servers', unreachable(half)]);
      // Another wrong value: the rest is still there.
      await client.submit('/step/servers', { [`${half}_host`]: 'nowhere.invalid' });
      expect(faultsOn(client)).toEqual(unreachable(half));
      expect(client.page.html).toContain('value="nowhere.invalid"');
      const { host, port } = settingsOf(user)[half];
      const { credentials } = await linked(
        await client.submit('/step/servers', { [`${half}_host`]: host, [`${half}_port`]: String(port) }),
      );
      expect(credentials[half]).toMatchObject({ host, port, password: user.password });
    },
  );

  test.each([
    ['imap', 'IMAP'],
    ['smtp', 'SMTP'],
  ] as const)('marks the user of the half that refuses the login (%s)', async (half, protocol) => {
    wrong(half, { user: 'somebody-else' });
    const client = await opened();
    await client.submit('/step/login', login());
    expect([client.path, faultsOn(client)]).toEqual([
      '/step/servers',
      { [`field-${half}_user`]: `The ${protocol} server refuses the user name or the password.` },
    ]);
    expect((await linked(await client.submit('/step/servers', { [`${half}_user`]: user.address }))).account.name).toBe(
      user.address,
    );
  });

  test('takes another password', async () => {
    const client = await opened();
    await client.submit('/step/login', login({ advanced: 'on', password: secret() }));
    await client.submit('/step/servers');
    expect(faultsOn(client)).toEqual({
      'field-password': 'The mail server refuses the address or the password.',
    });
    const { credentials } = await linked(await client.submit('/step/servers', { password: user.password }));
    expect(credentials.smtp.password).toBe(user.password);
  });

  test('counts its attempts: after five there is a pause', async () => {
    wrong('imap', { port: Number(await freePort()) });
    const client = await opened();
    await client.submit('/step/login', login());
    for (let i = 0; i < 4; i++) await client.submit('/step/servers');
    expect(faultsOn(client)).toEqual(unreachable('imap'));
    const { port } = settingsOf(user).imap;
    expect(await client.submit('/step/servers', { imap_port: String(port) })).toBeUndefined();
    expect(client.text).toContain('There were too many attempts.');
  });

  test('shows the same page, whatever is at a wrong address: it is no way to look around in a network', async () => {
    const untrusted = await startDovecot('', createCertificate('localhost'));
    const { port: web } = await startRaw((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { port: database } = await startRaw((socket) => void socket.end('E\0\0\0\x0bSFATAL\0'));
    const { port: banner } = await startRaw((socket) => void socket.end('220 ftp.example.test ready\r\n'));
    const places = [
      { port: Number(await freePort()) },
      { host: 'nowhere.invalid', port: 993 },
      { port: web },
      { port: web, encryption: 'none' },
      { port: database, encryption: 'none' },
      { port: banner, encryption: 'starttls' },
      { port: untrusted.imapsPort },
      { port: untrusted.imapPort, encryption: 'starttls' },
    ];
    for (const place of places) {
      wrong('imap', place);
      const client = await opened();
      await client.submit('/step/login', login());
      expect([place, client.path, faultsOn(client)]).toEqual([place, '/step/servers', unreachable('imap')]);
    }
  });

  test('says that a server cannot serve now', async () => {
    const { port } = await startRaw((socket) => void socket.end('* BYE Too many connections\r\n'));
    wrong('imap', { port, encryption: 'none' });
    const client = await opened();
    await client.submit('/step/login', login());
    expect([client.path, client.text]).toEqual([
      '/step/login',
      expect.stringContaining('The mail server cannot check the password now.'),
    ]);
  });
});

describe('a mailbox whose host has its own sign-in', () => {
  test('of Google: the link offers Google, and the user continues there', async () => {
    found = { kind: 'sign-in', host: 'google' };
    const client = await opened({ providers: ['imap', 'google'] });
    await client.submit('/choose', { provider: 'imap' });
    await client.submit('/step/login', login());
    expect([client.path, client.text]).toEqual(['/step/sign-in', expect.stringContaining('This mailbox is at Google')]);
    await client.submit('/step/sign-in', { way: 'google' });
    expect([client.path, client.text]).toEqual(['/step/google', expect.stringContaining('Sign in at Google')]);
    expect((await linked(await client.submit('/step/google'))).account.provider).toBe('google');
  });

  test('of Google: without that offer, an app password', async () => {
    found = { kind: 'sign-in', host: 'google' };
    const client = await opened();
    await client.submit('/step/login', login());
    expect(client.page.html).not.toContain('value="google"');
    await client.submit('/step/sign-in');
    expect([client.path, client.text]).toEqual([
      '/step/servers',
      expect.stringContaining('myaccount.google.com/apppasswords'),
    ]);
    expect(client.page.html).toContain('value="imap.gmail.com"');
    expect(dovecot.log()).not.toContain(`user=<${user.address}>`);
  });

  test('of Microsoft: the user can take another address', async () => {
    found = { kind: 'sign-in', host: 'outlook' };
    const client = await opened();
    await client.submit('/step/login', login());
    expect(client.text).toContain('Microsoft does not accept passwords here.');
    await client.submit('/step/sign-in', { way: 'login' });
    found = { kind: 'servers', settings: settingsOf(user) };
    expect((await linked(await client.submit('/step/login', login()))).account.name).toBe(user.address);
  });
});

describe('a reconnect', () => {
  test('keeps the servers: only the password is asked for', async () => {
    found = { kind: 'guess', isKnown: true, settings: settingsOf(user) };
    const first = await opened();
    await first.submit('/step/login', login());
    const { account } = await linked(await first.submit('/step/servers'));
    const changed = newUser(user.address);
    expect(changed.password).not.toBe(user.password);
    looked = [];
    const client = await opened({ account_id: account.id });
    expect(client.page.html).toContain(`value="${user.address}"`);
    const again = await linked(await client.submit('/step/login', { ...changed }));
    expect([again.account.id, again.credentials.imap.password, looked]).toEqual([account.id, changed.password, []]);
  });

  test('with another mailbox leads to the page that says so', async () => {
    const first = await opened();
    const { account } = await linked(await first.submit('/step/login', login()));
    const other = newUser();
    found = { kind: 'servers', settings: settingsOf(other) };
    const client = await opened({ account_id: account.id });
    await client.submit('/step/login', { ...other });
    expect([client.path, client.text]).toEqual(['/wrong-account', expect.any(String)]);
  });
});

describe('a proxy', () => {
  /** An HTTP proxy. It notes where its clients want to go. */
  async function startProxy() {
    const targets: string[] = [];
    const server = createServer((near) => {
      near
        .on('error', () => undefined)
        .once('data', (head) => {
          const [, host = '', port = ''] = /^CONNECT ([^ ]+):(\d+) /.exec(String(head)) ?? [];
          const allowed = String(head).includes(`Basic ${Buffer.from('ann:proxy-password').toString('base64')}`);
          if (!allowed) return void near.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
          targets.push(port);
          const far = connect(Number(port), host);
          far.on('error', () => near.destroy()).once('connect', () => near.write('HTTP/1.1 200 OK\r\n\r\n'));
          far.pipe(near).pipe(far);
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUpLater(() => void server.close());
    return { port: (server.address() as AddressInfo).port, targets };
  }

  test('of the link is used for both servers', async () => {
    const { port, targets } = await startProxy();
    const proxy = { protocol: 'http', host: '127.0.0.1', port, username: 'ann', password: 'proxy-password' };
    const client = await opened({ config: { imap: { custom_proxy: proxy } } });
    const { account } = await linked(await client.submit('/step/login', login()));
    expect(targets.map(Number).sort()).toEqual([dovecot.imapsPort, smtp.tlsPort].sort());
    // A reconnect goes the same way.
    const again = await opened({ account_id: account.id });
    await linked(await again.submit('/step/login', login()));
    expect(targets).toHaveLength(4);
  });

  test('that refuses its password is named', async () => {
    const { port } = await startProxy();
    const proxy = { protocol: 'http', host: '127.0.0.1', port, username: 'ann', password: secret() };
    const client = await opened({ config: { imap: { custom_proxy: proxy } } });
    await client.submit('/step/login', login());
    expect([client.path, client.text]).toEqual([
      '/step/login',
      expect.stringContaining('The proxy refuses its user name or its password.'),
    ]);
  });
});
