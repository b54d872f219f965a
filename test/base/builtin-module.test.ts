import { hostname } from 'node:os';
import { afterEach, expect, it, vi } from 'vitest';
import { builtinModule } from '../../src/base/builtin-module.ts';

afterEach(() => vi.unstubAllGlobals());

it('is a module of Node, and undefined if there is no such module', () => {
  expect(builtinModule<typeof import('node:os')>('node:os')?.hostname).toBe(hostname);
  expect(builtinModule('node:no-such-module')).toBeUndefined();
});

it.each([
  ['without a process', undefined],
  ['whose process has no modules', {}],
  [
    'whose modules throw',
    {
      getBuiltinModule: () => {
        throw new Error('not supported');
      },
    },
  ],
])('is undefined on a platform %s', (_, process) => {
  vi.stubGlobal('process', process);
  expect(builtinModule('node:os')).toBeUndefined();
});
