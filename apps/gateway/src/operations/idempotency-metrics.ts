import type { IdempotencyEvent } from 'headgate/idempotency';
import { Counter, Histogram, type Registry } from 'prom-client';
import { SLOW } from './buckets.ts';

/** Creates the metrics of idempotency keys. Returns the function that counts an event. */
export function createIdempotencyMetrics(registers: Registry[]): (event: IdempotencyEvent) => void {
  const claims = new Counter({
    name: 'headgate_idempotency_claims_total',
    help: 'Requests with an idempotency key, by outcome: claimed, inherited, replayed, bypassed, unavailable, or the reason of the refusal',
    labelNames: ['outcome'],
    registers,
  });
  const steps = new Counter({
    name: 'headgate_idempotency_steps_total',
    help: 'Steps of claims: completed, not_kept (stored without its body), released, superseded, lost, overdue, forgotten, retrying, given_up',
    labelNames: ['step'],
    registers,
  });
  const orphans = new Counter({
    name: 'headgate_idempotency_orphans_total',
    help: 'Requests whose original died with an unknown outcome',
    registers,
  });
  const waits = new Histogram({
    name: 'headgate_idempotency_wait_seconds',
    help: 'Time that duplicates waited for the outcome of their original',
    buckets: SLOW,
    registers,
  });
  return (event) => {
    switch (event.type) {
      case 'claimed':
        claims.inc({ outcome: event.inherited ? 'inherited' : 'claimed' });
        if (event.inherited) orphans.inc();
        break;
      case 'refused':
        claims.inc({ outcome: event.reason });
        if (event.reason === 'orphan') orphans.inc();
        break;
      case 'replayed':
      case 'bypassed':
      case 'unavailable':
        claims.inc({ outcome: event.type });
        break;
      case 'waited':
        waits.observe(event.waitedMs / 1_000);
        break;
      case 'completed':
        steps.inc({ step: event.valueKept ? 'completed' : 'not_kept' });
        break;
      case 'reconciled':
        break;
      default:
        steps.inc({ step: event.type });
    }
  };
}
