import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The machine, the versions and the commit of a run. Without them a figure cannot be checked. */
export function provenance() {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const changes =
    git('status', '--porcelain', '--', 'src', 'apps', 'packages', 'bench', ':!**bench/results') === ''
      ? ''
      : ' with changes';
  return {
    headgate: version,
    commit: git('rev-parse', '--short', 'HEAD') + changes,
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    os: `${platform()} ${release()} ${arch()}`,
    date: new Date().toISOString(),
  };
}

/** The version of a package that the file `from` would import. */
export function versionOf(name, from = import.meta.url) {
  for (const folder of createRequire(from).resolve.paths(name)) {
    const manifest = join(folder, name, 'package.json');
    if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, 'utf8')).version;
  }
  return 'unknown';
}

/** The last paragraph of a topic's section: where and how its figures were made. */
export function origin({ node, cpu, cores, memoryGib, os, commit, date, versions = {} }, topic) {
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const machine = `${cpu}, ${cores} cores, ${memoryGib} GiB, ${os}, Node ${node}, commit ${commit}, ${date}.`;
  return `${used.length > 0 ? `${used.join(', ')}. ` : ''}${machine} Reproduce: \`npm run bench -- --topic ${topic}\`.`;
}

function git(...args) {
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}
