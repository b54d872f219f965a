/** Milliseconds after which a reported time is too old: two clocks can drift apart by about 30 ms in a minute. */
const MAX_AGE_MS = 60_000;
/** Addresses of servers change over time. Past this many all reports are deleted, which costs one round trip each. */
const MAX_SERVERS = 20_000;
/** Both clocks round down to whole milliseconds. */
const ROUNDING_MS = 2;

/**
 * The last time that each server reported, and when this process received it. Clocks of two servers are never compared
 * (S15), so each server reports apart.
 */
export class ServerTime {
  readonly #reports = new Map<string, { readonly time: number; readonly receivedAt: number }>();

  /** @param time the server's time; `receivedAt` is when this process received it, on its own clock */
  report(server: string, time: number, receivedAt: number): void {
    if (this.#reports.size >= MAX_SERVERS) this.#reports.clear();
    this.#reports.set(server, { time, receivedAt });
  }

  /**
   * Returns a time on the server's clock that is no later than `waitMs` after `now` on this process's clock. Undefined
   * if the server has not reported its time recently. The transfer time of the report makes the result earlier, never
   * later.
   */
  deadline(server: string, now: number, waitMs: number): number | undefined {
    const report = this.#reports.get(server);
    if (report === undefined) return undefined;
    const elapsed = now - report.receivedAt;
    return elapsed > MAX_AGE_MS ? undefined : report.time + elapsed + waitMs - ROUNDING_MS;
  }
}
