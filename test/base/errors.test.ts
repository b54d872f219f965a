import { inspect } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import {
  ClockError,
  ClosedError,
  CostError,
  HeadgateError,
  isHeadgateError,
  LimitError,
  OptionError,
  ResultUnavailableError,
  ScopeFullError,
  StoreFullError,
  StoreNotSynchronousError,
  StoreUnavailableError,
  SubjectError,
  UnknownPlanError,
} from '../../src/base/errors.ts';
import { describeThrown, stackOf } from '../../src/base/thrown.ts';

const EACH = [
  {
    error: new LimitError('limits.x', -1, 'bad'),
    name: 'LimitError',
    code: 'invalid_limit',
    message: 'limits.x: bad, got -1',
  },
  {
    error: new OptionError('maxKeys', 0, 'bad'),
    name: 'OptionError',
    code: 'invalid_option',
    message: 'maxKeys: bad, got 0',
  },
  {
    error: new SubjectError('account', 5),
    name: 'SubjectError',
    code: 'invalid_subject',
    message: 'account must be a string, got 5',
  },
  {
    error: new CostError(0),
    name: 'CostError',
    code: 'invalid_cost',
    message: 'cost must be an integer from 1 to 9007199254740991, got 0',
  },
  {
    error: new ClockError(0.5),
    name: 'ClockError',
    code: 'invalid_clock',
    message: 'clock.now() must return integer milliseconds, got 0.5',
  },
  {
    error: new StoreFullError(7),
    name: 'StoreFullError',
    code: 'store_full',
    message: /^the store is full with 7 keys/,
  },
  {
    error: new ScopeFullError(7, 1_000),
    name: 'ScopeFullError',
    code: 'scope_full',
    message: /^the scope is full with 7 idempotency keys.*maxClaimsPerScope/,
  },
  {
    error: new StoreNotSynchronousError(),
    name: 'StoreNotSynchronousError',
    code: 'store_not_synchronous',
    message: /createMemoryStore\(\)/,
  },
  { error: new ClosedError('limiter'), name: 'ClosedError', code: 'closed', message: /^limiter was closed/ },
] as const;

describe('errors', () => {
  it.each(EACH)('$name has a code, a name and a message', ({ error, name, code, message }) => {
    expect(error).toBeInstanceOf(HeadgateError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code });
    expect(error.message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
  });

  it('keep their name in a bundle that is minified, and in their stack', async () => {
    const entry = `
      import * as errors from './src/base/errors.ts';
      import * as worker from './src/waiting/errors.ts';
      import * as client from './src/client/errors.ts';
      import { KeptFailureError, notExecuted } from './src/idempotency/outcome.ts';
      export const all = { ...errors, ...worker, ...client, KeptFailureError, NotExecutedError: notExecuted('').constructor };
    `;
    const { outputFiles } = await build({
      stdin: { contents: entry, resolveDir: process.cwd(), loader: 'ts' },
      bundle: true,
      minify: true,
      format: 'esm',
      write: false,
    });
    const text = outputFiles[0]?.text ?? '';
    const { all } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
    const classes = Object.entries<new (...rest: unknown[]) => Error>(all).filter(([name]) => name.endsWith('Error'));
    const errors = classes
      .filter(([name]) => name !== 'isHeadgateError')
      .map(([name, Class]) => ({ name, error: new Class('a', []) }));
    expect(errors.length).toBeGreaterThan(15);
    for (const { name, error } of errors) expect([error.name, error.stack?.split(':', 1)[0]]).toEqual([name, name]);
  });

  it('are identified by their code', () => {
    for (const { error, code } of EACH) {
      expect(isHeadgateError(error)).toBe(true);
      expect(EACH.filter((other) => isHeadgateError(error, other.code)).map((other) => other.code)).toEqual([code]);
    }
  });

  it('of another copy of the package are recognised as well', () => {
    const other = Object.assign(new Error('elsewhere'), { code: 'closed', [Symbol.for('headgate.error')]: true });
    expect([isHeadgateError(other), isHeadgateError(other, 'closed'), isHeadgateError(other, 'store_full')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([null, undefined, 5, 'closed', {}, new Error('x'), { code: 'closed' }])(
    '%s is not an error of headgate',
    (value) => {
      expect(isHeadgateError(value)).toBe(false);
      expect(isHeadgateError(value, 'closed')).toBe(false);
    },
  );

  it('keep their cause', () => {
    const cause = new Error('below');
    expect(new HeadgateError('closed', 'above', { cause }).cause).toBe(cause);
  });

  it.each([
    ['text', '"text"'],
    ['a"\n', '"a\\"\\n"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
    [() => 1, 'a function'],
    [[1], 'an array'],
    [{ secret: 'hunter2' }, 'an object'],
    [null, 'null'],
    [undefined, 'undefined'],
    [5n, '5n'],
    [Number.NaN, 'NaN'],
    [Symbol('s'), 'Symbol(s)'],
    [true, 'true'],
  ])('S3: the message shows the value, shortened and without the contents of objects (%#)', (value, text) => {
    const error = new OptionError('x', value, 'bad');
    expect(error.message).toBe(`x: bad, got ${text}`);
  });

  it.each([
    ['redis://user:hunter2@localhost:6379', '"redis://…"'],
    ['rediss://localhost', '"rediss://…"'],
    ['://', '"://"'],
  ])('of the URL %s the message shows only the scheme', (url, text) => {
    expect(new OptionError('client', url, 'bad').message).toBe(`client: bad, got ${text}`);
  });

  it('do not have the value that they reject, in any property, and do not print it', () => {
    const client = { options: { password: 'hunter2' }, url: 'redis://:hunter2@localhost' };
    for (const error of [
      new LimitError('limits', client, 'bad'),
      new OptionError('client', client, 'bad'),
      new OptionError('client', client.url, 'bad'),
      new SubjectError('account', client),
      new CostError(client),
      new ClockError(client),
      new StoreUnavailableError(new Error('below')),
    ]) {
      expect(inspect(error, { showHidden: true, depth: 10 })).not.toMatch('hunter2');
      expect(JSON.stringify(Object.values(Object.getOwnPropertyDescriptors(error)))).not.toMatch('hunter2');
    }
  });

  it.each<[string, () => unknown]>([
    ['a value without text', () => Object.create(null)],
    ['an error with a BigInt as message', () => Object.assign(new Error(), { message: 10n })],
    [
      'an error whose message cannot be read',
      () =>
        Object.defineProperty(new Error(), 'message', {
          get: () => {
            throw new Error('no');
          },
        }),
    ],
    [
      'a revoked proxy',
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      },
    ],
  ])('can be made of %s, and recognised beside it', (_, make) => {
    const thrown = make();
    expect(new StoreUnavailableError(thrown).message).toMatch(
      /^the store is unavailable: (a value that has no text|10)$/,
    );
    expect(isHeadgateError(thrown)).toBe(false);
    expect(typeof describeThrown(thrown).name).toBe('string');
    expect(typeof stackOf(thrown)).toBe('string');
  });
});

it('messages say what to do, and messages of causes are kept', () => {
  expect(new StoreFullError(9).message).toBe(
    'the store is full with 9 keys, and those that it checked are active: raise maxKeys (active keys are never evicted)',
  );
  const cause = new Error('gone');
  const unavailable = new ResultUnavailableError(cause);
  expect([unavailable.code, unavailable.message, unavailable.cause]).toEqual([
    'result_unavailable',
    'the stored result cannot be read now: gone',
    cause,
  ]);
  expect(new StoreUnavailableError(cause).sent).toBe(true);
  expect(new StoreUnavailableError(cause, {}).sent).toBe(true);
});

it.each([
  [10, ''],
  [11, ', …'],
])('of %i plans ten are named', (count, others) => {
  const plans = Array.from({ length: count }, (_, i) => `p${i}`);
  const named = plans.slice(0, 10).map((plan) => JSON.stringify(plan));
  expect(new UnknownPlanError('x', plans).message).toBe(
    `unknown plan "x": limits.plans has ${named.join(', ')}${others}`,
  );
});

it('of a URL only the scheme is shown, also if it is empty', () => {
  expect(new OptionError('url', '://user:password@host', 'bad').message).toBe('url: bad, got "://…"');
});

it('only errors have stacks: an object with one is described, and an error without one has its message', () => {
  expect(stackOf({ stack: 'like a stack' })).toBe('[object Object]');
  expect(stackOf(Object.assign(new Error('boom'), { stack: undefined }))).toBe('boom');
});
