import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { Contract } from './contract.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder in which the test files note the answers that they saw. */
    contractFolder: string;
  }
}

const SEEN = 'seen.txt';
const DECLARED = 'declared.txt';

/** Notes an `operationId status` that a test saw. */
export const noteSeen = (folder: string, pair: string): void => appendFileSync(join(folder, SEEN), `${pair}\n`);

export const noteDeclared = (folder: string, contract: Contract): void =>
  writeFileSync(join(folder, DECLARED), contract.declaredPairs().join('\n'));

/** Each project loads this module for itself; they share the folder through the one process that sets them up. */
const shared = globalThis as { communicationApiContract?: { readonly folder: string; users: number } };

/**
 * After all test files of all projects: fails if the document declares a status of an operation that no test saw. Does
 * nothing if only some of the API's tests were run.
 */
export function setup(project: TestProject): () => Promise<void> {
  shared.communicationApiContract ??= { folder: mkdtempSync(join(tmpdir(), 'communication-api-contract-')), users: 0 };
  const contract = shared.communicationApiContract;
  contract.users += 1;
  project.provide('contractFolder', contract.folder);
  return async () => {
    try {
      if (await hasRunTheApi(project)) checkCoverage(contract.folder);
    } finally {
      contract.users -= 1;
      if (contract.users === 0) rmSync(contract.folder, { recursive: true });
    }
  };
}

/** Whether the project contains the tests of the API, and ran all of its files. */
async function hasRunTheApi(project: TestProject): Promise<boolean> {
  const { testFiles } = await project.globTestFiles();
  const run = new Set(project.vitest.state.getFiles().map(({ filepath }) => filepath));
  const hasApi = testFiles.some((file) => file.endsWith('/test/api/contract-coverage.test.ts'));
  return hasApi && project.config.testNamePattern === undefined && testFiles.every((file) => run.has(file));
}

function checkCoverage(folder: string): void {
  const linesOf = (name: string): readonly string[] =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean) : [];
  const seen = new Set(linesOf(SEEN));
  const missing = linesOf(DECLARED).filter((pair) => !seen.has(pair));
  if (missing.length === 0) return;
  // Vitest prints an error of a teardown, but does not fail for it.
  process.exitCode = 1;
  throw new Error(`No test saw these answers, which the OpenAPI document declares:\n  ${missing.join('\n  ')}`);
}
