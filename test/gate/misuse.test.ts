import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterFile } from 'headgate-testbed/after-file';
import { describe, expect, it } from 'vitest';
import { headgate, routeOf } from '../../src/adapters/express.ts';
import type { MisuseWarning } from '../../src/core/misuse.ts';
import type { Gate } from '../../src/gate/gate.ts';
import type { HandlerResponse } from '../../src/gate/options.ts';
import { createGate, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

/** A gate, and the warnings that it logs. */
function watched<Request>(options: Partial<GateOptions<Request>> = {}, max = 1_000) {
  const warnings: MisuseWarning[] = [];
  const gate = createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: [`${max}/1m`] } }),
    account: () => 'a',
    route: () => 'r',
    logger: (_, warning) => void warnings.push(warning as MisuseWarning),
    ...options,
  });
  return { gate, warnings, codes: () => warnings.map(({ code }) => code) };
}

async function ask(app: express.Express): Promise<number[]> {
  const server = app.listen(0, '127.0.0.1');
  afterFile(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
  const statuses: number[] = [];
  for (let i = 0; i < 3; i++) statuses.push((await fetch(url)).status);
  return statuses;
}

describe('HG_GATE_TWICE', () => {
  it('is logged once if an application and its route have the same gate', async () => {
    const { gate, codes } = watched<express.Request>();
    const app = express().use(headgate(gate));
    app.get('/x', headgate(gate), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect(codes()).toEqual(['HG_GATE_TWICE']);
  });

  it('is logged if the second gate rejects every request', async () => {
    const { gate, codes } = watched<express.Request>({}, 1);
    const app = express().use(headgate(gate));
    app.get('/x', headgate(gate, { cost: 1 }), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([429, 429, 429]);
    expect(codes()).toEqual(['HG_GATE_TWICE']);
  });

  it('is logged if the route has the same gate with limits of its own, since All methods counts twice', async () => {
    const { gate, codes } = watched<express.Request>();
    const app = express().use(headgate(gate));
    app.get('/x', headgate(gate, { limits: ['5/1s'] }), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect(codes()).toEqual(['HG_GATE_TWICE']);
  });

  it('is logged if a third gate is the first one again', async () => {
    const { gate, codes } = watched<express.Request>();
    const other = watched<express.Request>();
    const app = express().use(headgate(gate)).use(headgate(other.gate));
    app.get('/x', headgate(gate), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect([codes(), other.codes()]).toEqual([['HG_GATE_TWICE'], []]);
  });

  it('S34: is logged for two routes of one gate too, if all routes of an account share a count', async () => {
    const codes: string[] = [];
    const gate = createGate<express.Request>({
      limiter: createLimiter({ limits: ['9/1m'] }),
      account: () => 'a',
      logger: (_message, warning) => codes.push((warning as MisuseWarning).code),
    });
    const app = express().use(headgate(gate));
    app.get('/x', headgate(gate, { route: routeOf, limits: ['5/1s'] }), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect(codes).toEqual(['HG_GATE_TWICE']);
  });

  it('is not logged for two gates, or for two routes of one gate', async () => {
    const { gate, codes } = watched<express.Request>();
    const other = watched<express.Request>();
    const app = express().use(headgate(gate)).use(headgate(other.gate));
    app.get('/x', headgate(gate, { route: routeOf }), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect([codes(), other.codes()]).toEqual([[], []]);
  });

  it('is not logged with validate: false', async () => {
    const { gate, codes } = watched<express.Request>({ validate: false });
    const app = express().use(headgate(gate));
    app.get('/x', headgate(gate), (_, response) => void response.send('ok'));
    expect(await ask(app)).toEqual([200, 200, 200]);
    expect(codes()).toEqual([]);
  });
});

describe('HG_NO_ACCOUNT', () => {
  interface Request {
    readonly account?: string;
  }
  const account = (request: Request) => request.account;

  it('is logged once if the first 100 requests have no account, whichever route of the gate they are for', async () => {
    const { gate, codes } = watched<Request>({ account });
    const ofRoute = gate.with({ cost: 2 });
    for (let i = 0; i < 99; i++) await (i % 2 === 0 ? gate : ofRoute).enter({});
    expect(codes()).toEqual([]);
    for (let i = 0; i < 300; i++) await ofRoute.enter({});
    expect(codes()).toEqual(['HG_NO_ACCOUNT']);
  });

  it('is not logged if one of them has an account', async () => {
    const { gate, codes } = watched<Request>({ account: async (request) => request.account });
    for (let i = 0; i < 500; i++) await gate.enter(i === 98 ? { account: 'a' } : {});
    expect(codes()).toEqual([]);
  });

  it('does not count requests without a route, such as health checks, and is off with validate: false', async () => {
    const { gate, codes } = watched<Request>({ account, route: () => undefined });
    const off = watched<Request>({ account, validate: false });
    for (let i = 0; i < 200; i++) await Promise.all([gate.enter({}), off.gate.enter({})]);
    expect([codes(), off.codes()]).toEqual([[], []]);
  });
});

describe('HG_NOTHING_LIMITED', () => {
  it('is logged once if the first 1,000 requests were exempt or allowed, and says how many of each', async () => {
    const { gate, warnings } = watched<number>({ route: () => undefined, allow: (request) => request < 400 });
    const ofRoute = gate.with({ cost: 2 });
    for (let i = 0; i < 999; i++) await (i % 2 === 0 ? gate : ofRoute).enter(i);
    expect(warnings).toEqual([]);
    for (let i = 0; i < 2_000; i++) await gate.enter(999);
    expect(warnings.map(({ code, message }) => [code, message])).toEqual([
      [
        'HG_NOTHING_LIMITED',
        'No limit applied to 1000 of the first 1000 requests: `allow` returned true for 400, `route` was undefined for 600.',
      ],
    ]);
  });

  it('is logged if nearly all of them passed without an account, and not if 11 were limited', async () => {
    const messages = [10, 11].map(async (limited) => {
      const account = (i: number) => (i < limited ? 'a' : undefined);
      const { gate, warnings } = watched<number>({ account, onNoAccount: 'pass' });
      for (let i = 0; i < 2_000; i++) await gate.enter(i);
      return warnings.map(({ message }) => message);
    });
    expect(await Promise.all(messages)).toEqual([
      ['No limit applied to 990 of the first 1000 requests: `account` was undefined for 990.'],
      [],
    ]);
  });

  it('is logged once if finalCost returns 0 for every response, errors among them', async () => {
    const respond = async (status: number, gate: Gate<object>) => {
      const entry = await gate.enter({});
      if (entry.kind === 'proceed') entry.settle({ status });
    };
    const { gate, codes } = watched<object>({ finalCost: () => 0 });
    for (let i = 0; i < 150; i++) await respond(200, gate);
    // A gate that only counts errors does the same so far.
    expect(codes()).toEqual([]);
    for (let i = 0; i < 150; i++) await respond(401, gate);
    expect(codes()).toEqual(['HG_NOTHING_LIMITED']);
    for (const finalCost of [({ status }: HandlerResponse) => (status < 400 ? 0 : undefined), () => undefined]) {
      const other = watched<object>({ finalCost });
      for (let i = 0; i < 150; i++) await respond(i === 99 ? 401 : 200, other.gate);
      expect(other.codes()).toEqual([]);
    }
  });

  it('is off with validate: false', async () => {
    const { gate, codes } = watched<object>({ route: () => undefined, validate: false });
    for (let i = 0; i < 1_001; i++) await gate.enter({});
    expect(codes()).toEqual([]);
  });
});

it('an answer has the decision of the limit that rejected the request', async () => {
  const { gate } = watched<object>({}, 0);
  expect(await gate.enter({})).toMatchObject({ kind: 'answer', decision: { accepted: false, account: 'a' } });
});
