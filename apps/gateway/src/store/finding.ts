/** The result of one check of a store. */
export interface Finding {
  readonly verdict: 'ok' | 'warning' | 'fault';
  readonly subject: string;
  /** The result, and the remedy if it is not ok. */
  readonly text: string;
}

export function ok(subject: string, text: string): Finding {
  return { verdict: 'ok', subject, text };
}

/** Findings as an aligned table. */
export function findingsTable(findings: readonly Finding[]): string {
  return findings.map(({ verdict, subject, text }) => `${verdict.padEnd(8)}${subject.padEnd(12)}${text}\n`).join('');
}
