import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const APP = fileURLToPath(new URL('../..', import.meta.url));
/** Below the packages that the parts import. It is not published. */
const FILE = fileURLToPath(new URL('../../node_modules/.cache/headgate/service-parts.mjs', import.meta.url));
/** Names, by the module of the service that exports them. */
const PARTS = {
  'accounts/accounts.ts': 'Accounts',
  'applications/applications.ts': 'Applications',
  'cli/open-store.ts': 'openStore',
  'config.ts': 'readConfig',
  'keys/keys.ts': 'Keys',
  'observability/log.ts': 'createLog',
  'people/people.ts': 'createPeople',
  'providers/mock/mail.ts': 'MockMailProvider',
  'providers/mock/mailbox.ts': 'MockMailbox',
  'security/envelope.ts': 'Envelope',
  'webhooks/events.ts': 'Events',
};
const ENTRY = Object.entries(PARTS).map(([file, name]) => `export { ${name} } from './src/${file}';\n`);

/** Builds the parts of the service that the benchmark uses beside the built service itself. */
export const buildServiceParts = () =>
  build({
    stdin: { contents: ENTRY.join(''), resolveDir: APP, loader: 'ts' },
    outfile: FILE,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
  });

export const loadServiceParts = () => import(pathToFileURL(FILE).href);
