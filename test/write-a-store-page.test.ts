import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { abandon, begin, type ClaimRecord, complete, dispatch, extend } from '../src/core/claim.ts';
import { runningClaim } from './support/claim-record.ts';

const page = readFileSync(resolve(import.meta.dirname, '../docs/write-a-store.md'), 'utf8');

const NOW = 10_000;
const LEASE_MS = 1_000;
const command = { token: 'a', fingerprint: 'f', retentionMs: 50_000, leaseMs: LEASE_MS, generation: 3 };
const beginning = { ...command, onOrphan: 'reconcile' as const, dispatch: true };
const own = runningClaim(NOW);
const orphan: ClaimRecord = { ...own, owner: 'b', dispatched: true, leaseUntil: NOW };
const free: ClaimRecord = { ...own, state: 'free', owner: '', leaseUntil: NOW };
const result = { status: '200', value: undefined };
const abandonment = { ...command, releasedRetentionMs: 7_000 };

/** The records before each step, and the step. */
const STEPS: Record<string, readonly [before: ClaimRecord | undefined, after: ClaimRecord | undefined][]> = {
  claims: [undefined, free].map((before) => [before, begin(before, beginning, NOW).record]),
  inherits: [[orphan, begin(orphan, beginning, NOW).record]],
  renews: [own, { ...own, leaseUntil: NOW }].map((before) => [before, extend(before, command, NOW).record]),
  marks: [own, { ...own, dispatched: true, inherited: true }].map((before) => [
    before,
    dispatch(before, command, NOW).record,
  ]),
  keeps: [undefined, free, own, { ...orphan, inherited: true }].map((before) => [
    before,
    complete(before, { ...command, result }, NOW).record,
  ]),
  frees: [own, { ...own, dispatched: true }].map((before) => [before, abandon(before, abandonment, NOW).record]),
  orphans: [{ ...own, dispatched: true, inherited: true }].map((before) => [
    before,
    abandon(before, abandonment, NOW).record,
  ]),
};

/** What the words of a cell make of a field. */
const WORDS: Record<string, (before: unknown) => unknown> = {
  '–': (before) => before,
  '–; 0 if absent': (before) => before ?? 0,
  'the token': () => 'a',
  "`''`": () => '',
  'one more': (before) => Number(before) + 1,
  'one more; 1 if absent': (before) => Number(before ?? 0) + 1,
  'as the command says': () => true,
  true: () => true,
  false: () => false,
  '`in_progress`': () => 'in_progress',
  '`completed`': () => 'completed',
  '`free`': () => 'free',
  '`now`': () => NOW,
  '`now + leaseMs`': () => NOW + LEASE_MS,
};

const [head = '', , ...rows] = /^\| step \|.*\n(?:\|.*\n)+/m.exec(page)?.[0].trim().split('\n') ?? [];
const cellsOf = (row: string): string[] =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
const [, ...fields] = cellsOf(head).map((cell) => cell.replaceAll('`', ''));

it('docs/write-a-store.md has a row for each step that writes', () => {
  expect(rows.map((row) => cellsOf(row)[0])).toEqual(Object.keys(STEPS).map((step) => `*${step}*`));
});

it.each(rows.map(cellsOf))('docs/write-a-store.md: what %s sets is what the rule sets', (name = '', ...cells) => {
  const steps = STEPS[name.replaceAll('*', '')] ?? [];
  expect(steps.length).toBeGreaterThan(0);
  for (const [before, after] of steps) {
    const expected = fields.map((field, i) => WORDS[cells[i] ?? '']?.(before?.[field as keyof ClaimRecord]));
    expect(fields.map((field) => after?.[field as keyof ClaimRecord])).toEqual(expected);
  }
});
