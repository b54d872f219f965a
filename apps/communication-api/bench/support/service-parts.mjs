import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const APP = fileURLToPath(new URL('../..', import.meta.url));
/** Below the packages that the parts import. It is not published. */
const FILE = fileURLToPath(new URL('../../node_modules/.cache/headgate/service-parts.mjs', import.meta.url));
/** Names, by the module of the service that exports them. */
const PARTS = {
  '../../../../bench/support/src/accounts/accounts.ts': 'Accounts',
  '../../../../bench/support/src/applications/applications.ts': 'Applications',
  '../../../../bench/support/src/cli/open-store.ts': 'openStore',
  '../../../../bench/support/src/config.ts': 'readConfig',
  '../../../../bench/support/src/keys/keys.ts': 'Keys',
  '../../../../bench/support/src/observability/log.ts': 'createLog',
  '../../../../bench/support/src/people/people.ts': 'createPeople',
  '../../../../bench/support/src/providers/mock/mail.ts': 'MockMailProvider',
  '../../../../bench/support/src/providers/mock/mailbox.ts': 'MockMailbox',
  '../../../../bench/support/src/security/envelope.ts': 'Envelope',
  '../../../../bench/support/src/webhooks/events.ts': 'Events',
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
