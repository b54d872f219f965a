import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file that the wizard's pages load. */
export interface Asset {
  /** Changes with the content, so browsers may keep it for ever. */
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
}

// The folder beside `src` is also beside `dist`, where the bundle is.
function read(name: string, extension: string, contentType: string): Asset {
  const body = readFileSync(new URL(`../assets/${name}.${extension}`, import.meta.url));
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { path: `/auth/assets/${name}.${hash}.${extension}`, contentType, body };
}

export const WIZARD_STYLESHEET = read('wizard', 'css', 'text/css; charset=utf-8');
export const WIZARD_SCRIPT = read('wizard', 'js', 'text/javascript; charset=utf-8');
