import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  abandon,
  type BeginCommand,
  begin,
  type ClaimRecord,
  complete,
  dispatch,
  extend,
  type OnOrphan,
} from '../src/core/claim.ts';
import { CLAIM_CASES } from '../src/testing/claim-cases.ts';
import { runningClaim } from './support/claim-record.ts';

const DOCS = resolve(import.meta.dirname, '../docs');
const page = readFileSync(resolve(DOCS, 'claims.md'), 'utf8');
const model = readFileSync(resolve(DOCS, 'claim.pml'), 'utf8');

const NOW = 10_000;
const RESULT = { status: '200', value: 'sent' };
const common = { token: 'a', fingerprint: 'f', retentionMs: 50_000 };
const held = { ...common, leaseMs: 1_000, generation: 3 };
const beginning: BeginCommand = { ...common, leaseMs: 1_000, onOrphan: 'reject', dispatch: false };

const own = runningClaim(NOW);
const foreign: ClaimRecord = { ...own, owner: 'b' };
const free: ClaimRecord = { ...own, state: 'free', owner: '', leaseUntil: NOW };
const completed: ClaimRecord = { ...own, state: 'completed', leaseUntil: NOW, result: RESULT };

/** The records that a column of the page describes. Each of them must behave as the cell says. */
const COLUMNS: Record<string, readonly (ClaimRecord | undefined)[]> = {
  absent: [undefined, { ...completed, keptUntil: NOW }],
  free: [free],
  own: [own, { ...own, leaseUntil: NOW }, { ...own, dispatched: true }, { ...own, dispatched: true, leaseUntil: NOW }],
  'own, inherited': [{ ...own, dispatched: true, inherited: true }],
  "another's": [foreign, { ...foreign, leaseUntil: NOW }, { ...foreign, dispatched: true }, { ...own, generation: 4 }],
  'in progress': [own, foreign, { ...foreign, leaseUntil: NOW }, { ...foreign, dispatched: true, leaseUntil: NOW }],
  'completed by this token': [completed],
  'completed by another': [{ ...completed, owner: 'b' }],
  completed: [completed, { ...completed, owner: 'b' }],
};

type Step = { readonly record: ClaimRecord | undefined; readonly reply: { readonly kind: string } };

/** Executes a command of a request with this fingerprint. */
function execute(command: string, record: ClaimRecord | undefined, fingerprint = 'f'): Step {
  switch (command) {
    case 'begin':
      return begin(record, { ...beginning, fingerprint }, NOW);
    case 'extend':
      return extend(record, { ...held, fingerprint }, NOW);
    case 'dispatch':
      return dispatch(record, { ...held, fingerprint }, NOW);
    case 'complete':
      return complete(record, { ...common, fingerprint, result: RESULT }, NOW);
    default:
      return abandon(record, { ...common, releasedRetentionMs: 7_000, fingerprint, generation: 3 }, NOW);
  }
}

const renewed = { leaseUntil: NOW + 1_000, keptUntil: NOW + 50_000 };
const claimed = { ...own, ...renewed };

/** What each effect word of the page does to a record. */
const EFFECTS: Record<string, (before: ClaimRecord | undefined) => ClaimRecord | undefined> = {
  '–': (before) => before,
  claims: (before) => ({ ...claimed, generation: (before?.generation ?? 0) + 1 }),
  inherits: (before) => ({ ...claimed, generation: (before?.generation ?? 0) + 1, dispatched: true, inherited: true }),
  renews: (before) => before && { ...before, ...renewed },
  marks: (before) => before && { ...before, ...renewed, dispatched: true, inherited: false },
  keeps: (before) => ({
    ...completed,
    generation: before?.generation ?? 0,
    leaseUntil: NOW,
    keptUntil: NOW + 50_000,
  }),
  frees: (before) =>
    before && { ...before, state: 'free', owner: '', dispatched: false, leaseUntil: NOW, keptUntil: NOW + 7_000 },
  orphans: (before) => before && { ...before, owner: '', leaseUntil: NOW, keptUntil: NOW + 50_000 },
};

/** The rows of the table whose header begins with these columns. */
function table(...head: readonly string[]): readonly (readonly string[])[] {
  const start = page.indexOf(`| ${head.join(' | ')} |`);
  if (start === -1) throw new Error(`no table of ${head.join(', ')}`);
  const lines = (page.slice(start).split('\n\n')[0] as string).split('\n');
  return lines
    .filter((_, i) => i !== 1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
}

function expectCell(cell: string, before: ClaimRecord | undefined, { record, reply }: Step): void {
  const [effect, kind] = cell.split(' → ') as [string, string];
  expect(reply.kind, cell).toBe(kind);
  // An expired record counts as absent.
  const live = before !== undefined && before.keptUntil > NOW ? before : undefined;
  expect(record, cell).toEqual((EFFECTS[effect] as (typeof EFFECTS)[string])(live));
  if (effect === '–') expect(record, cell).toBe(live);
}

function cells(...head: readonly string[]): [command: string, column: string, cell: string][] {
  const [columns = [], ...rows] = table(...head);
  return rows.flatMap(([command = '', ...row]) =>
    row.map((cell, i): [string, string, string] => [command, columns[i + 1] as string, cell]),
  );
}

describe('docs/claims.md describes what the code does', () => {
  const same = cells('command', 'absent', 'free', 'own');
  const other = cells('command', 'free', 'in progress', 'completed');
  const takeovers = table('lease', 'mark', '`onOrphan`').slice(1);

  it('has all cells', () => expect([same.length, other.length, takeovers.length]).toEqual([35, 15, 5]));

  it.each(same.filter(([, , cell]) => cell !== 'see below'))('%s, %s: %s', (command, column, cell) => {
    for (const record of COLUMNS[column] as NonNullable<(typeof COLUMNS)[string]>) {
      expectCell(cell, record, execute(command, record));
    }
  });

  it.each(other)('another fingerprint: %s, %s: %s', (command, column, cell) => {
    for (const record of COLUMNS[column] as NonNullable<(typeof COLUMNS)[string]>) {
      expectCell(cell, record, execute(command, record, 'g'));
    }
  });

  it.each(takeovers)("begin, the claim is another's: lease %s, mark %s, %s: %s", (lease, mark, policy, cell) => {
    const policies = policy === 'any' ? ['reject', 'reexecute', 'reconcile'] : [policy];
    const marks = mark === 'either' ? [true, false] : [mark === 'yes'];
    for (const onOrphan of policies as OnOrphan[]) {
      for (const dispatched of marks) {
        const record = { ...foreign, dispatched, leaseUntil: lease === 'over' ? NOW : NOW + 1 };
        expectCell(cell as string, record, begin(record, { ...beginning, onOrphan }, NOW));
      }
    }
  });

  it('lists all variants of the model, and the cases of the suite', () => {
    const listed = [...page.matchAll(/^\| `(W_[A-Z_]+)` \|/gm)].map(([, name]) => name as string);
    const modelled = new Set(model.match(/\bW_[A-Z_]+\b/g)?.filter((name) => name !== 'W_'));
    expect(listed.sort()).toEqual([...modelled].sort());
    const cases = Object.keys(CLAIM_CASES)
      .map((name) => name.split(':')[0] as string)
      .filter((name) => name.startsWith('W_'));
    // The model has no such variant: each of its variants that loses a record still stores an outcome without a record.
    expect(cases.filter((name) => !listed.includes(name))).toEqual(['W_COMPLETE_NEEDS_RECORD']);
  });
});
