import { readFileSync } from 'node:fs';

const load = (id) =>
  /\.(lua|sql)$/.test(id) ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : undefined;

/** For Vite: the scripts for Redis and PostgreSQL are imported as text, as the build does. */
export const scriptsAsText = { name: 'scripts-as-text', enforce: 'pre', load };
