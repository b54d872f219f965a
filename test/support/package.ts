import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { packHouse } from '../../scripts/pack.mjs';

export const ROOT = resolve(import.meta.dirname, '../..');

type Conditions = Readonly<Record<'import' | 'require', Readonly<Record<'types' | 'default', string>>>>;

export const manifest: {
  readonly exports: Readonly<Record<string, Conditions | string>>;
  readonly types: string;
  readonly typesVersions: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly dependencies: object;
  readonly peerDependencies: object;
} = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Every subpath that is a module, such as `./express`, with its files. */
export const subpaths = Object.entries(manifest.exports).filter(
  (entry): entry is [string, Conditions] => typeof entry[1] === 'object',
);

/** The subpath as users write it: `headgate/express` for `./express`. */
export function nameOf(subpath: string): string {
  return subpath.replace('.', 'headgate');
}

/** The package as npm publishes it, in a new folder. */
export interface Packed {
  readonly folder: string;
  readonly archive: string;
  readonly files: readonly string[];
  readonly unpackedBytes: number;
}

export function pack(): Packed {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-package-'));
  return { folder, ...packHouse('.', folder) };
}

/** Creates a project in the folder of the package, with the package and these other packages installed. */
export function install({ folder, archive }: Packed, name: string, others: readonly string[]): string {
  const project = join(folder, name);
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, 'headgate'), { recursive: true });
  execFileSync('tar', ['-xzf', archive, '--strip-components=1', '-C', join(modules, 'headgate')]);
  for (const other of ['lru-cache', ...others]) {
    const from = join(ROOT, 'node_modules', other);
    if (!existsSync(from)) throw new Error(`${other} is not installed`);
    mkdirSync(dirname(join(modules, other)), { recursive: true });
    symlinkSync(from, join(modules, other));
  }
  return project;
}
