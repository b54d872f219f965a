import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file that pages load. */
export interface Asset {
  /** Changes with the content, so browsers may keep it for ever. */
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
}

// Bundled code runs in `dist`, which is beside `assets` just as `src` is.
const read = (file: string): Buffer => readFileSync(new URL(`../assets/${file}`, import.meta.url));

function asset(place: string, name: string, extension: string, contentType: string, body: Buffer): Asset {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { path: `${place}/assets/${name}.${hash}.${extension}`, contentType, body };
}

const CSS = 'text/css; charset=utf-8';
const wizardStyle = read('wizard.css');

export const WIZARD_STYLESHEET = asset('/auth', 'wizard', 'css', CSS, wizardStyle);
export const WIZARD_SCRIPT = asset('/auth', 'wizard', 'js', 'text/javascript; charset=utf-8', read('wizard.js'));
/** Takes fields, buttons and colours from the wizard. */
export const DASHBOARD_STYLESHEET = asset(
  '/dashboard',
  'dashboard',
  'css',
  CSS,
  Buffer.concat([wizardStyle, read('dashboard.css')]),
);
