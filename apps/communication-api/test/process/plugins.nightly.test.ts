import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/messenger.mjs', import.meta.url));

test('the built service loads a plug-in, and makes links for it', async () => {
  const { ready, printed } = runProcess(['start'], { DATA_DIR: temporaryFolder(), PROVIDERS: EXAMPLE });
  const url = await ready();
  const [token = ''] = /ck_svc_dev_\S+/.exec(printed.out) ?? [];
  const answer = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({
      providers: 'telegram',
      expires_on: new Date(Date.now() + 60_000).toISOString(),
      redirect_uri: 'https://app.example/cb',
    }),
  });
  expect(answer.status).toBe(200);
  const { pathname } = new URL(((await answer.json()) as { link: string }).link);
  const [cookie = ''] = (await fetch(url + pathname, { redirect: 'manual' })).headers.getSetCookie();
  const page = await fetch(`${url}${pathname}/step/start`, { headers: { cookie: cookie.split(';')[0] ?? '' } });
  expect(await page.text()).toContain('Link your messenger');
});
