import { afterEach, describe, expect, it, vi } from 'vitest';
import { CircuitBreaker } from '../../../src/stores/shared/circuit-breaker.ts';

const fail = async (): Promise<never> => {
  throw new Error('down');
};
const harmless = async (): Promise<never> => {
  throw new Error('harmless');
};
const succeed = async (): Promise<string> => 'answer';
const attempt = (call: Promise<unknown>): Promise<unknown> => call.catch((error: Error) => error.message);

const newBreaker = (): CircuitBreaker =>
  new CircuitBreaker({
    deadlineMs: 10_000,
    isReady: () => true,
    isHarmless: (error) => (error as Error).message === 'harmless',
  });

/** Opens it with five failures. */
async function open(breaker: CircuitBreaker): Promise<void> {
  for (let i = 0; i < 5; i++) await attempt(breaker.run(fail));
  expect(breaker.state).toBe('open');
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a circuit breaker', () => {
  it('S15: tests the server after half a second, also if the wall clock was set back meanwhile', async () => {
    const breaker = newBreaker();
    await open(breaker);
    const passed = performance.now() + 501;
    vi.spyOn(performance, 'now').mockImplementation(() => passed);
    const anHourAgo = Date.now() - 3_600_000;
    vi.spyOn(Date, 'now').mockImplementation(() => anHourAgo);
    expect(await breaker.run(succeed)).toBe('answer');
    expect(breaker.state).toBe('closed');
  });

  it('opens after five failures in a row, and then sends nothing; a success or a harmless error starts anew', async () => {
    const breaker = newBreaker();
    for (const call of [fail, fail, fail, fail, succeed, fail, fail, fail, fail, harmless, fail, fail, fail, fail])
      await attempt(breaker.run<unknown>(call));
    expect(breaker.state).toBe('closed');
    await attempt(breaker.run(fail));
    expect(breaker.state).toBe('open');
    await expect(breaker.run(() => expect.unreachable())).rejects.toMatchObject({ sent: false });
  });

  it('sends one call as a test, and refuses the others meanwhile; only its result counts', async () => {
    const breaker = newBreaker();
    let answer = (_: string): void => {};
    const sentBefore = breaker.run(() => new Promise<string>((resolve) => (answer = resolve)));
    await open(breaker);
    answer('late');
    await sentBefore;
    expect(breaker.state).toBe('open');
    let later = performance.now() + 501;
    vi.spyOn(performance, 'now').mockImplementation(() => later);
    const test = attempt(breaker.run(fail));
    expect(breaker.state).toBe('half-open');
    await expect(breaker.run(() => expect.unreachable())).rejects.toMatchObject({ sent: false });
    expect(await test).toContain('down');
    expect(breaker.state).toBe('open');
    await expect(breaker.run(() => expect.unreachable())).rejects.toMatchObject({ sent: false });
    later += 501;
    expect(await attempt(breaker.run(harmless))).toContain('harmless');
    expect(breaker.state).toBe('closed');
  });
});
