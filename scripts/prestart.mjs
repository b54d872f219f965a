// Builds what `npm start` needs, if it is not up to date: the library without types, and the service. Both at the same time.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const builds = [
  ['scripts/build.mjs', '--no-types', '--if-changed', '--say'],
  ['apps/communication-api/scripts/build.mjs', '--if-changed', '--say'],
];

const codes = await Promise.all(
  builds.map(
    (args) =>
      new Promise((resolve, reject) => {
        const cwd = fileURLToPath(new URL('..', import.meta.url));
        spawn(process.execPath, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
          .on('error', reject)
          .on('close', resolve);
      }),
  ),
);
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
