/** Decision 94: where a request passes, an object literal that adds properties does not begin with a spread. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';

const SRC = resolve(import.meta.dirname, '../src');

/** The files whose code runs for each request, and when. What is only made at the start may begin with a spread. */
const HOT_PATH: Readonly<Record<string, readonly string[]>> = {
  'each decision of a limit': [
    ...['core/window.ts', 'core/decision.ts', 'limits/limiter.ts', 'limits/receipts.ts', 'limits/window-sets.ts'],
    ...['stores/memory/limits.ts', 'stores/memory/records.ts', 'stores/memory/slab.ts', 'stores/memory/counters.ts'],
    ...['leases/lease-store.ts', 'leases/leased-decision.ts', 'leases/pair.ts', 'leases/pairs.ts'],
    ...['stores/redis/limits.ts', 'stores/redis/script.ts', 'stores/redis/keys.ts', 'stores/redis/reply.ts'],
  ],
  'each request through a gate': [
    ...['gate/gate.ts', 'gate/passage.ts', 'gate/limit-stage.ts', 'gate/resolver.ts', 'gate/own-answer.ts'],
    ...['http/rate-limit-fields.ts', 'http/problem.ts', 'http/raw-fields.ts'],
  ],
  'each request with an idempotency key': [
    ...['gate/idempotency-stage.ts', 'gate/idempotent-request.ts', 'gate/answer-tape.ts', 'gate/recording.ts'],
    ...[
      'idempotency/attempt.ts',
      'idempotency/runtime.ts',
      'idempotency/retry-queue.ts',
      'idempotency/leased-claim.ts',
    ],
    ...['stores/memory/claim-table.ts', 'stores/redis/claim-calls.ts', 'stores/redis/claim-reply.ts'],
    'http/stored-response.ts',
  ],
  'each request of an adapter': [
    ...['adapters/node/bridge.ts', 'adapters/node/capture.ts', 'adapters/node/head.ts', 'adapters/node/request.ts'],
    ...['adapters/web/bridge.ts', 'adapters/web/capture.ts', 'adapters/web/request.ts', 'adapters/shared/request.ts'],
  ],
};

/** Where literals of a source begin with a spread and add properties, as `file:line`. */
function literalsToTurn(file: string, text: string): readonly string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isObjectLiteralExpression(node)) {
      const [first, ...others] = node.properties;
      if (first !== undefined && ts.isSpreadAssignment(first) && !others.every(ts.isSpreadAssignment))
        found.push(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

it('finds a literal that begins with a spread and adds properties, and no other', () => {
  const text = [
    'const a = { ...b };',
    'const c = { d, ...b };',
    'const e = { ...b, ...c };',
    'const f = [...b, 1];',
    'const { g, ...h } = b;',
    'const i = { ...b, d };',
    'const j = { k: {',
    '  ...b, l() {} } };',
  ].join('\n');
  expect(literalsToTurn('x.ts', text)).toEqual(['x.ts:6', 'x.ts:7']);
});

it.each(Object.entries(HOT_PATH))('%s: no literal begins with a spread and adds properties', (_, files) => {
  // Write { added, ...rest } in place of { ...rest, added }: see decision 94 in docs/decisions.md.
  expect(files.flatMap((file) => literalsToTurn(file, readFileSync(resolve(SRC, file), 'utf8')))).toEqual([]);
});
