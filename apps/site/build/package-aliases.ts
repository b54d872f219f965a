import { join } from 'node:path';
import { builtName, SUBPATHS } from '../../../scripts/subpaths.mjs';
import { ROOT } from './pages.ts';

/** The subpaths of the package as it is built: what its users run. */
export const packageAliases = Object.keys(SUBPATHS).map((subpath) => ({
  find: new RegExp(`^headgate${subpath.slice(1)}$`),
  replacement: join(ROOT, 'dist', `${builtName(subpath)}.js`),
}));
