import { AggregatorRegistry, type Registry } from 'prom-client';
import type { MetricFamily } from '../operations/metrics.ts';

/** Metrics of these types must never fall, even if one of the processes ends. */
const CUMULATIVE: readonly string[] = ['counter', 'histogram', 'summary'];

/**
 * Adds up the metrics of several processes. The aggregator of a metric says how: most are summed up, some keep the
 * largest value.
 */
export function sumOf(processes: readonly (readonly MetricFamily[])[]): Registry {
  // prom-client would leave out the time of the start. The earliest is the primary's.
  const all = processes.map((families) =>
    families.map((family) => (family.aggregator === 'omit' ? { ...family, aggregator: 'min' } : family)),
  );
  return AggregatorRegistry.aggregate(all);
}

/** The final counts of ended workers. */
export class EndedWorkers {
  #families: readonly MetricFamily[] = [];

  get families(): readonly MetricFamily[] {
    return this.#families;
  }

  /** @param last the last known metrics of a worker */
  add(last: readonly MetricFamily[]): void {
    const cumulative = last.filter(({ type }) => CUMULATIVE.includes(type));
    // The declaration of prom-client takes the type for a number.
    this.#families = sumOf([this.#families, cumulative]).getMetricsAsArray() as unknown as readonly MetricFamily[];
  }
}
