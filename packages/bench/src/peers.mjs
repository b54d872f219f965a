import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { progress } from './progress.mjs';
import { versionOf } from './provenance.mjs';

const MANIFEST = new URL('../versus/package.json', import.meta.url);

/** Installs the peers if one is missing. They are in a separate package, because only the benchmarks need them. */
export function installPeers() {
  const folder = fileURLToPath(new URL('.', MANIFEST));
  const { dependencies } = JSON.parse(readFileSync(MANIFEST, 'utf8'));
  const isInstalled = (name) => existsSync(`${folder}node_modules/${name}`);
  // An older installation may lack a peer that was added later, so each one is checked.
  if (Object.keys(dependencies).every(isInstalled)) return;
  progress('installing packages/bench/versus');
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

export const requirePeer = createRequire(MANIFEST);

/** The module that a peer itself would get for `name`. */
export function requireOf(peer, name) {
  return createRequire(requirePeer.resolve(peer))(name);
}

export function versionWithin(peer, name) {
  return versionOf(name, requirePeer.resolve(peer));
}

/** The installed version of each peer, for a result's provenance. */
export function peerVersions(names) {
  return Object.fromEntries(names.map((name) => [name, versionOf(name, MANIFEST)]));
}
