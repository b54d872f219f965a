import { Elysia } from 'elysia';
import { H3, serve } from 'h3';
import { Hono } from 'hono';
import { describe, it } from 'vitest';
import * as onElysia from '../../../src/adapters/elysia.ts';
import * as onH3 from '../../../src/adapters/h3.ts';
import * as onHono from '../../../src/adapters/hono.ts';

/** An app on the server that its framework has in this runtime. */
interface Served {
  readonly port: number;
  close(): unknown;
}

declare const Bun: undefined | { serve(options: object): { readonly port: number; stop(all: boolean): unknown } };
declare const Deno:
  | undefined
  | { serve(options: object, handler: unknown): { readonly addr: { readonly port: number }; shutdown(): unknown } };

const LIMITS = { perAddress: ['2/1m'] } as const;
const HERE = { port: 0, hostname: '127.0.0.1' };

const APPS: Record<string, () => Served | Promise<Served>> = {
  hono() {
    const { fetch } = new Hono().use(onHono.headgate(LIMITS)).get('/', (c) => c.text('ok'));
    if (typeof Deno !== 'undefined') {
      const stop = new AbortController();
      const { addr } = Deno.serve({ ...HERE, signal: stop.signal, onListen() {} }, fetch);
      return { port: addr.port, close: () => stop.abort() };
    }
    const server = (Bun as NonNullable<typeof Bun>).serve({ ...HERE, fetch });
    return { port: server.port, close: () => server.stop(true) };
  },
  async h3() {
    const app = new H3().use(onH3.headgate(LIMITS)).get('/', () => 'ok');
    const server = serve(app, { ...HERE, silent: true });
    await server.ready();
    return { port: Number(new URL(server.url as string).port), close: () => server.close(true) };
  },
};
// Elysia has a server of its own only on Bun.
if (typeof Bun !== 'undefined') {
  APPS.elysia = () => {
    const app = new Elysia().use(onElysia.headgate(LIMITS)).get('/', () => 'ok');
    app.listen(HERE);
    return { port: app.server?.port as number, close: () => app.stop(true) };
  };
}

describe('limits by address, as the own server of the runtime reports it', () => {
  for (const [name, start] of Object.entries(APPS)) {
    it(`${name}: the third request of an address is rejected`, async () => {
      const { port, close } = await start();
      try {
        const statuses = [];
        for (let i = 0; i < 3; i++) {
          const response = await fetch(new Request(`http://127.0.0.1:${port}/`));
          await response.text();
          statuses.push(response.status);
        }
        if (statuses.join() !== '200,200,429') throw new Error(`was answered ${statuses}`);
      } finally {
        await close();
      }
    });
  }
});
