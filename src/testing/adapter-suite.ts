import { FAULT_CASES } from './adapter-fault-cases.ts';
import { IDEMPOTENCY_CASES } from './adapter-idempotency-cases.ts';
import { LIMIT_CASES } from './adapter-limit-cases.ts';
import { SOCKET_CASES } from './adapter-socket-cases.ts';
import type { AdapterSubject } from './adapter-subject.ts';
import { type AdapterCase, AdapterWorld } from './adapter-world.ts';
import type { SuiteRunner } from './limit-store-suite.ts';

const CASES: readonly AdapterCase[] = [...LIMIT_CASES, ...IDEMPOTENCY_CASES, ...FAULT_CASES, ...SOCKET_CASES];

/** Names of all cases, for those who declare gaps. */
export const ADAPTER_CASES: readonly string[] = CASES.map(({ name }) => name);

/**
 * Judges an adapter over a real server: limits, idempotency, streams, disconnects, and handlers and resolvers that fail.
 * @example
 * ```ts
 * adapterSuite({ describe, it }, { name: 'mine', listen: serveMine, header, route, idempotentRequest });
 * ```
 */
export function adapterSuite<Request>({ describe, it }: SuiteRunner, subject: AdapterSubject<Request>): void {
  const { name, gaps = {} } = subject;
  const unknown = Object.keys(gaps).filter((gap) => !ADAPTER_CASES.includes(gap));
  if (unknown.length > 0) throw new Error(`${name} declares gaps that are no cases: ${unknown.join('; ')}`);

  describe(`${name} as an adapter`, () => {
    for (const one of CASES) {
      const gap = gaps[one.name];
      if (gap === undefined) it(one.name, () => live(subject, one), 20_000);
      else it(`${one.name} (gap: ${gap})`, () => fails(live(subject, one)), 20_000);
    }
  });
}

async function live<Request>(subject: AdapterSubject<Request>, { options, needs, run }: AdapterCase): Promise<void> {
  const world = await AdapterWorld.open(subject, options);
  try {
    if (world.has(needs)) await run(world);
  } finally {
    await world.close();
  }
}

async function fails(running: Promise<void>): Promise<void> {
  const held = await running.then(
    () => true,
    () => false,
  );
  if (held) throw new Error('this case holds: the gap is to be struck out');
}
