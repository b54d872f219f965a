import { afterAll, expect } from 'vitest';

/**
 * For files that share a process: a file that replaces a global changes what all files after it test. Such a file belongs
 * into an isolated project.
 */
const { Request: ThisRequest, Response: ThisResponse } = globalThis;

afterAll(() => {
  expect([globalThis.Request, globalThis.Response], 'the globals Request and Response').toEqual([
    ThisRequest,
    ThisResponse,
  ]);
});
