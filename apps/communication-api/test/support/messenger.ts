import { copyFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll } from 'vitest';
import { loadPlugins } from '../../src/providers/plugins.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { secret } from './secret.ts';
import { temporaryFolder } from './temporary-folder.ts';

const EXAMPLE = new URL('../../examples/messenger.mjs', import.meta.url);

const picture = (label: string): string =>
  `data:image/svg+xml;base64,${Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80"><rect width="200" height="80" fill="#fff"/><text x="20" y="55" font-size="40">${label}</text></svg>`,
  ).toString('base64')}`;

/** The messenger that the plug-in `examples/messenger.mjs` uses. */
export interface Messenger {
  readonly url: string;
  readonly letters: string;
  readonly code: string;
  /** Whether the QR code was scanned. */
  scanned: boolean;
  /** Whether it answers 500. */
  broken: boolean;
}

/** Starts a messenger, which ends after the test file. */
export async function startMessenger(): Promise<Messenger> {
  const numbers = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const values = JSON.parse(await text(request)) as Readonly<Record<string, string>>;
    const [, session = `s${numbers.size + 1}`] = /^\/sessions\/(.+)$/.exec(request.url ?? '') ?? [];
    const answer = (status: number, body: object): void => {
      response.writeHead(messenger.broken ? 500 : status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const number = (): string | undefined => numbers.get(session);
    const user = () => ({ user: { id: `user ${number()}`, number: number(), token: secret() } });
    if (request.url === '/sessions') {
      numbers.set(session, values.number ?? 'a scanned number');
      if (values.number === undefined) return answer(200, { page: 'scan', session, picture: picture('QR') });
      return answer(200, { page: 'captcha', session, picture: picture(messenger.letters) });
    }
    if (values.letters !== undefined && values.letters !== messenger.letters) return answer(422, { field: 'letters' });
    if (values.letters !== undefined) return answer(200, { page: 'code', session });
    if (values.code !== undefined && values.code !== messenger.code) return answer(422, { field: 'code' });
    if (values.code !== undefined || messenger.scanned) return answer(200, user());
    return answer(200, { page: 'scan', session, picture: picture('QR') });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const messenger: Messenger = {
    ...{ url: `http://127.0.0.1:${port}`, letters: 'W7K2', code: '424242' },
    ...{ scanned: false, broken: false },
  };
  return messenger;
}

/** Loads the plug-in of the example from a fresh copy: a module reads the address of its messenger once per process. */
export function loadMessenger({ url }: Messenger): Promise<readonly Provider[]> {
  process.env.MESSENGER_URL = url;
  const copy = join(temporaryFolder(), 'messenger.mjs');
  copyFileSync(EXAMPLE, copy);
  return loadPlugins([copy]);
}
