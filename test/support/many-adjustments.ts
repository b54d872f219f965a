import { type Adjustment, type AdjustmentState, targetKey } from '../../src/core/adjustment.ts';

/** A history with so many adjusted accounts. */
export function stateOf(count: number): AdjustmentState {
  const author = { at: 1_800_000_000_000, by: 'jane', reason: 'INC-12' };
  const windows = [{ max: 10, durationMs: 60_000 }];
  const head = { version: 1_000, nonce: 'n1000' };
  const entryOf = (version: number) => ({
    ...{ version, nonce: `n${version}`, ...author, source: 'change' as const },
    limits: [{ target: { account: `acc_${version}` }, from: undefined, to: windows }],
  });
  return {
    head,
    adjustments: Array.from({ length: count }, (_, i) => ({
      ...{ target: { account: `acc_${i}` }, windows, version: 1, ...author },
    })),
    recent: Array.from({ length: 1_000 }, (_, i) => entryOf(i + 1)),
  };
}

/** By `targetKey`. */
export function adjustmentsOf({ adjustments }: AdjustmentState): Map<string, Adjustment> {
  return new Map(adjustments.map((each) => [targetKey(each.target), each]));
}
