import { Secret, TOTP, URI } from 'otpauth';
import decodeQR from 'qr/decode.js';
import type { PlainBrowser } from '../wizard/plain-browser.ts';

/** An authenticator app with the secret of a page. */
export class Authenticator {
  /** The secret, in base32. */
  readonly typed: string;
  readonly #totp: TOTP;
  readonly #clock: () => number;
  #last = 0;

  constructor(html: string, clock: () => number) {
    const typed = (/<code>([A-Z2-7 ]{39})<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '');
    this.typed = typed;
    this.#totp = new TOTP({ secret: Secret.fromBase32(typed) });
    this.#clock = clock;
  }

  /** The code of now, moved by some steps of 30 s. */
  code(steps = 0): string {
    return this.#totp.generate({ timestamp: this.#clock() + steps * 30_000 });
  }

  /** A code that was not used: of this step, or of the next one. Only two can be used at a time. */
  unused(): string {
    const step = Math.max(Math.floor(this.#clock() / 30_000), this.#last + 1);
    this.#last = step;
    return this.#totp.generate({ timestamp: step * 30_000 });
  }
}

/** Pixels per square of a QR code. */
const SCALE = 4;

/** The secret in the QR code of a page, in base32, as a camera reads it. */
export function scannedSecret(html: string): string {
  const size = Number(/<svg class="qr" viewBox="0 0 (\d+) /.exec(html)?.[1]) * SCALE;
  const data = new Uint8Array(size * size * 4).fill(255);
  for (const [, x, y] of html.matchAll(/M(\d+) (\d+)h1v1h-1z/g))
    for (let row = 0; row < SCALE; row++) {
      const start = ((Number(y) * SCALE + row) * size + Number(x) * SCALE) * 4;
      for (let i = start; i < start + SCALE * 4; i++) if (i % 4 < 3) data[i] = 0;
    }
  return URI.parse(decodeQR({ width: size, height: size, data })).secret.base32;
}

/** The recovery codes of a page. */
export const recoveryCodesIn = (html: string): readonly string[] =>
  [...html.matchAll(/<code>((?:[0-9a-z]{4}-?){4})<\/code>/g)].map(([, code = '']) => code);

/** Sets up a second factor in a browser that is signed in. */
export async function setUpSecondFactor(browser: PlainBrowser, password: string, clock: () => number) {
  await browser.open('/dashboard/login/second-factor');
  const app = new Authenticator(browser.page.html, clock);
  await browser.submit('/second-factor', { new_code: app.unused(), password });
  return { app, codes: recoveryCodesIn(browser.page.html) };
}
