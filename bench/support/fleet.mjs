import { inFreshProcess } from 'headgate-bench/fresh-process';

const WORKER = new URL('./fleet-worker.mjs', import.meta.url);

/**
 * One fleet in virtual time.
 * @param settings `rule`: `each`, `leases`, `parts` or `later`; `processes`, `accounts`, `exponent` of Zipf or 0, `perSecond`,
 *   `seconds`, `limits`, `seed`; `homeShare`: the share of an account's requests that one process gets
 * @returns `decisions`, `exactly` (what one process would admit), `trips`, `over` and `missed`, summed over the accounts
 */
export const simulateFleet = (settings) => inFreshProcess(WORKER, [JSON.stringify(settings)]);
