import type { SuiteRunner } from '../../../src/testing/limit-store-suite.ts';
import { ANSWER_CASES } from './answer-cases.ts';
import { FAULT_CASES } from './fault-cases.ts';
import { type AdapterCase, AdapterFixture } from './fixture.ts';
import { IDEMPOTENCY_CASES } from './idempotency-cases.ts';
import { IN_FLIGHT_CASES } from './in-flight-cases.ts';
import { LIMIT_CASES } from './limit-cases.ts';
import { SOCKET_CASES } from './socket-cases.ts';
import { STACK_CASES } from './stack-cases.ts';
import type { AdapterSubject } from './subject.ts';

const CASES: readonly AdapterCase[] = [
  ...LIMIT_CASES,
  ...ANSWER_CASES,
  ...STACK_CASES,
  ...IDEMPOTENCY_CASES,
  ...FAULT_CASES,
  ...SOCKET_CASES,
  ...IN_FLIGHT_CASES,
];

/** The names of all cases: the possible keys of `gaps`. */
export const ADAPTER_CASES: readonly string[] = CASES.map(({ name }) => name);

/**
 * Tests an adapter over a real server: limits, idempotency, streams, disconnects, and handlers and resolvers that fail.
 * @example
 * ```ts
 * adapterSuite({ describe, it }, { name: 'mine', listen: serveMine, header, route, idempotentRequest });
 * ```
 */
export function adapterSuite<Request>({ describe, it }: SuiteRunner, subject: AdapterSubject<Request>): void {
  const { name, gaps = {} } = subject;
  const unknown = Object.keys(gaps).filter((gap) => !ADAPTER_CASES.includes(gap));
  if (unknown.length > 0) throw new Error(`${name}: gaps has unknown cases (see ADAPTER_CASES): ${unknown.join('; ')}`);

  describe(`${name} as an adapter`, () => {
    for (const one of CASES) {
      const gap = gaps[one.name];
      if (gap === undefined) it(one.name, () => runCase(subject, one), 20_000);
      else it(`${one.name} (gap: ${gap})`, () => assertFails(runCase(subject, one)), 20_000);
    }
  });
}

async function runCase<Request>(subject: AdapterSubject<Request>, { options, needs, run }: AdapterCase): Promise<void> {
  const fixture = await AdapterFixture.start(subject, options);
  try {
    if (fixture.has(needs)) await run(fixture);
  } finally {
    await fixture.close();
  }
}

async function assertFails(running: Promise<void>): Promise<void> {
  const passed = await running.then(
    () => true,
    () => false,
  );
  if (passed) throw new Error('this case passes: remove it from gaps');
}
