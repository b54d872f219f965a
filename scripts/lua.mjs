import { readFileSync } from 'node:fs';

/** For Vite: the scripts for Redis are imported as text, as the build does. */
export const luaAsText = {
  name: 'lua-as-text',
  enforce: 'pre',
  load: (id) => (id.endsWith('.lua') ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : undefined),
};
