import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { progress } from './progress.mjs';
import { versionOf } from './provenance.mjs';

const MANIFEST = new URL('../versus/package.json', import.meta.url);

/** Peers have a package of their own: nobody who works on headgate needs them but here. */
export function installPeers() {
  const folder = fileURLToPath(new URL('.', MANIFEST));
  const { dependencies } = JSON.parse(readFileSync(MANIFEST, 'utf8'));
  const isThere = (name) => existsSync(`${folder}node_modules/${name}`);
  // A folder of before may lack a peer that has joined since.
  if (Object.keys(dependencies).every(isThere)) return;
  progress('installing bench/versus');
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

export const requirePeer = createRequire(MANIFEST);

/** Of what a peer itself would get. */
export function requireOf(peer, name) {
  return createRequire(requirePeer.resolve(peer))(name);
}

export function versionWithin(peer, name) {
  return versionOf(name, requirePeer.resolve(peer));
}

/** What was installed of each, for a result's provenance. */
export function peerVersions(names) {
  return Object.fromEntries(names.map((name) => [name, versionOf(name, MANIFEST)]));
}
