import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { enterGate, type NodeExchange, passageOf } from '../../../src/adapters/node/bridge.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';

const limiter = (max: number) =>
  createLimiter({ store: createMemoryStore(), limits: { allMethods: [{ max, durationMs: 60_000 }] } });

const keyed = (): Partial<GateOptions<IncomingMessage>> => ({
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: () => ({ scope: 'app_1', key: 'k', fingerprint: { value: 'f' } as never }),
});

/** Takes a request through a gate; the result is the name of the method that was called. */
function enter(
  options: Partial<GateOptions<IncomingMessage>>,
  { response = newResponse(), ...rest }: Partial<NodeExchange<string>> = {},
) {
  const gate = createGate<IncomingMessage>({ limiter: limiter(1), account: () => 'a', route: () => 'r', ...options });
  const exchange: NodeExchange<string> = {
    response,
    answer: ({ status }) => `answer ${status}`,
    proceed: (capture) => (capture === undefined ? 'proceed' : 'proceed, captured'),
    skip: () => 'skip',
    ...rest,
  };
  return enterGate(gate, response.req, exchange);
}

function newResponse(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

describe('enterGate', () => {
  it('calls the exchange at once if the gate answers at once', () => {
    const response = newResponse();
    expect(enter({}, { response })).toBe('proceed');
    expect(passageOf(response)?.decision?.accepted).toBe(true);
    expect(enter({ limiter: limiter(0) })).toBe('answer 422');
  });

  it('waits for the gate if a resolver or a claim store answers later', async () => {
    const late = enter({ account: async () => 'a' });
    expect(late).toBeInstanceOf(Promise);
    expect(await late).toBe('proceed');
    expect(await enter(keyed())).toBe('proceed, captured');
  });

  it('I11: if the client is gone, abandons a passage whose outcome would be stored: a retry runs', async () => {
    const common = { ...keyed(), limiter: limiter(1) };
    const gone = newResponse();
    gone.destroy();
    expect(await enter(common, { response: gone })).toBe('skip');
    await expect.poll(() => enter(common)).toBe('proceed, captured');
  });

  it('does not touch the response of a request that must not reach its handler', () => {
    const response = newResponse();
    const { writeHead } = response;
    expect(enter({}, { response, turnBack: ({ kind }) => `turn back ${kind}` })).toBe('turn back proceed');
    expect([response.writeHead, passageOf(response)]).toEqual([writeHead, undefined]);
    expect(enter({ limiter: limiter(0) }, { turnBack: () => 'turn back' })).toBe('answer 422');
  });
});
