import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const APP = fileURLToPath(new URL('../../apps/communication-api', import.meta.url));
/** Below the packages that the parts import. It is not published. */
const FILE = fileURLToPath(new URL('../../node_modules/.cache/headgate/service-parts.mjs', import.meta.url));
const PARTS = `
export { Accounts } from './src/accounts/accounts.ts';
export { Applications } from './src/applications/applications.ts';
export { openStore } from './src/cli/open-store.ts';
export { readConfig } from './src/config.ts';
export { Keys } from './src/keys/keys.ts';
export { createLog } from './src/observability/log.ts';
export { createPeople } from './src/people/people.ts';
export { MockMailProvider } from './src/providers/mock/mail.ts';
export { MockMailbox } from './src/providers/mock/mailbox.ts';
export { Envelope } from './src/security/envelope.ts';
export { Events } from './src/webhooks/events.ts';
`;

/** Builds the parts of the service that the benchmark uses beside the built service itself. */
export const buildServiceParts = () =>
  build({
    stdin: { contents: PARTS, resolveDir: APP, loader: 'ts' },
    outfile: FILE,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
  });

export const loadServiceParts = () => import(pathToFileURL(FILE).href);
