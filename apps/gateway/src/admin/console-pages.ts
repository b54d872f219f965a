import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { Reply } from 'headgate/http';
import { type Asset, assets } from '#console';
import type { Config } from '../config/schema.ts';
import { refusalReply } from '../exchange/answers.ts';
import { refuse } from '../exchange/refusal.ts';
import { refuseOrigin } from './origin.ts';

/** The console: a page that uses the Admin API with the operator's token. The page itself contains no secret. */
export interface ConsolePages {
  isFor(request: IncomingMessage): boolean;
  answer(request: IncomingMessage): Promise<Reply>;
}

/** Nothing from elsewhere, nothing inline, and no text of the network becomes HTML. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const FIELDS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const ENCODERS = { br: promisify(brotliCompress), gzip: promisify(gzip) };
type Encoding = keyof typeof ENCODERS;

/** @param settings of now */
export function createConsolePages(
  settings: () => Pick<NonNullable<Config['admin']>, 'console' | 'hosts'>,
): ConsolePages {
  const files = new Map(assets.map((asset) => [`/${asset.path}`, new File(asset)]));
  return {
    isFor({ method, url = '' }) {
      const path = pathOf(url);
      return (
        settings().console && (method === 'GET' || method === 'HEAD') && (path === '/' || path.startsWith('/assets/'))
      );
    },
    async answer(request) {
      const file = files.get(pathOf(request.url ?? ''));
      const refusal = refuseOrigin(request, settings().hosts) ?? (file === undefined ? NO_FILE : undefined);
      if (file !== undefined && refusal === undefined) return await file.answer(request);
      const id = crypto.randomUUID();
      return refusalReply(refusal ?? NO_FILE, id, { 'cache-control': 'no-store', 'x-request-id': id });
    },
  };
}

const NO_FILE = refuse(404, 'errors/resource_not_found', 'The console has no such file.');

/** A file of the console. It is compressed when it is asked for, once. */
class File {
  readonly #asset: Asset;
  readonly #etag: string;
  readonly #encoded = new Map<Encoding, Promise<Buffer>>();

  constructor(asset: Asset) {
    this.#asset = asset;
    this.#etag = `"${createHash('sha256').update(asset.text).digest('base64url').slice(0, 22)}"`;
  }

  async answer({ headers }: IncomingMessage): Promise<Reply> {
    const { path, type, text } = this.#asset;
    const fields = {
      ...FIELDS,
      'content-type': type,
      // A file's name contains the hash of its content. The page's name does not.
      'cache-control': path === '' ? 'no-store' : 'public, max-age=31536000, immutable',
      etag: this.#etag,
      vary: 'accept-encoding',
    };
    if (headers['if-none-match'] === this.#etag) return { status: 304, headers: fields, body: '' };
    const encoding = encodingFor(headers['accept-encoding']);
    if (encoding === undefined) return { status: 200, headers: fields, body: text };
    const body = this.#encoded.get(encoding) ?? ENCODERS[encoding](text);
    this.#encoded.set(encoding, body);
    return { status: 200, headers: { ...fields, 'content-encoding': encoding }, body: await body };
  }
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] as string;
}

/** The first encoding that a client accepts. A weight of zero refuses it. */
function encodingFor(accepted = ''): Encoding | undefined {
  const names = accepted
    .toLowerCase()
    .split(',')
    .filter((each) => !/;\s*q=0(\.0*)?\s*$/.test(each))
    .map((each) => each.split(';', 1)[0]?.trim());
  return (['br', 'gzip'] as const).find((encoding) => names.includes(encoding));
}
