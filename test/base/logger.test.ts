import { format } from 'node:util';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createLogger } from '../../src/base/logger.ts';

describe('createLogger', () => {
  afterEach(() => vi.restoreAllMocks());

  it('writes to the console by default: the message as it is, and the stack without the properties of the error', () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    createLogger(undefined)('100 %s', Object.assign(new Error('boom'), { secret: 'hunter2' }));
    const text = format(...(written.mock.calls[0] as [string]));
    expect(text).toMatch(/^100 %s: Error: boom\n {4}at /);
    expect(text).not.toMatch('hunter2');
  });

  it('writes the message alone if there is no error', () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    createLogger(undefined)('message', undefined);
    expect(written.mock.calls).toEqual([['%s', 'message']]);
  });

  it('calls a function with the message and the error; false logs nothing', () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    const log = vi.fn();
    const error = new Error('boom');
    createLogger(log)('message', error);
    createLogger(false)('message', error);
    expect(log.mock.calls).toEqual([['message', error]]);
    expect(written).not.toHaveBeenCalled();
  });

  it('a logger that throws breaks nothing', () => {
    const log = createLogger(() => {
      throw new Error('full disk');
    });
    expect(() => log('message', undefined)).not.toThrow();
  });

  it('a logger that rejects ends no process', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    onTestFinished(() => void process.off('unhandledRejection', unhandled));
    createLogger(async () => {
      throw new Error('full disk');
    })('message', undefined);
    await new Promise(setImmediate);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it.each([true, 'stderr', {}])('%j is not a logger', (wrong) => {
    expect(() => createLogger(wrong as never)).toThrow(
      /^logger: must be false or a function of a message and an error, got /,
    );
  });
});
