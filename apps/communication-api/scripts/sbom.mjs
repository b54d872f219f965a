/**
 * Writes what a production installation of the service consists of, as a software bill of materials (CycloneDX, JSON):
 *
 *   node apps/communication-api/scripts/sbom.mjs [FILE]
 *
 * Without FILE, it goes to the standard output. It asks no registry: everything is in package-lock.json.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const [target] = process.argv.slice(2);
const MANIFESTS = ['package.json', 'apps/communication-api/package.json'];

const parent = mkdtempSync(join(tmpdir(), 'sbom-'));
// npm names the whole by its folder.
const folder = join(parent, 'headgate');
const npm = (...args) =>
  execFileSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });

try {
  for (const file of MANIFESTS) {
    // `npm sbom --omit=dev` leaves out every package that is also a dev dependency of anything, such as fastify.
    const { devDependencies, peerDependencies, peerDependenciesMeta, ...manifest } = JSON.parse(
      readFileSync(join(root, file), 'utf8'),
    );
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), JSON.stringify(manifest));
  }
  for (const file of ['package-lock.json', '.npmrc']) cpSync(join(root, file), join(folder, file));
  npm('install', '--package-lock-only', '--ignore-scripts', '--offline', '--silent');
  const sbom = npm('sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application');
  if (target === undefined) process.stdout.write(sbom);
  else writeFileSync(target, sbom);
} finally {
  rmSync(parent, { recursive: true });
}
