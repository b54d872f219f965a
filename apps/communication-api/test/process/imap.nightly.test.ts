import { expect, inject, test } from 'vitest';
import { startDovecot } from '../support/dovecot.ts';
import { runProcess } from '../support/service-process.ts';
import { startSmtpServer } from '../support/smtp-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

test('the built service links a mailbox, sends from it, and files the email there', async () => {
  const dovecot = await startDovecot();
  const smtp = await startSmtpServer();
  const user = dovecot.user('ann@example.test');
  smtp.user(user.address, user.password);
  const { certFile } = inject('certificate');
  const { ready, printed } = runProcess(['start'], { DATA_DIR: temporaryFolder(), NODE_EXTRA_CA_CERTS: certFile });
  const url = await ready();
  const [token = ''] = /ck_svc_dev_\S+/.exec(printed.out) ?? [];
  const headers = { 'x-api-key': token };
  const link = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      providers: ['imap'],
      expires_on: new Date(Date.now() + 60_000).toISOString(),
      redirect_uri: 'https://app.example/cb',
    }),
  });
  const person = new PlainBrowser(url);
  await person.open(new URL(((await link.json()) as { link: string }).link).pathname);
  // `localhost` has no mail servers in DNS, so nothing is asked.
  await person.submit('/step/login', { address: 'ann@localhost', password: user.password });
  const callback = await person.submit('/step/servers', {
    ...{ imap_host: 'localhost', imap_port: String(dovecot.imapsPort), imap_user: user.address },
    ...{ smtp_host: 'localhost', smtp_port: String(smtp.tlsPort), smtp_user: user.address },
  });
  const body = new FormData();
  body.set('account_id', new URL(callback ?? '').searchParams.get('account_id') ?? '');
  body.set('to', JSON.stringify([{ identifier: 'bob@example.test' }]));
  body.set('subject', 'From the built service');
  body.set('body', '<p>Hello</p>');
  const sent = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers, body });
  expect([sent.status, await sent.text()]).toEqual([201, expect.any(String)]);
  await expect.poll(() => dovecot.emails(user.address, 'Sent').length, { timeout: 20_000 }).toBe(1);
  expect(dovecot.emails(user.address, 'Sent')[0]).toContain('Subject: From the built service');
});
