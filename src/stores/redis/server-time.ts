/** Milliseconds after which a report of the server's time is of no use: two clocks may part by some 30 ms in a minute. */
const USEFUL_MS = 60_000;
/** Servers come and go with their addresses; past this many all reports are forgotten, which costs a round trip each. */
const MOST_SERVERS = 20_000;
/** Both clocks count whole milliseconds, rounded down. */
const ROUNDING_MS = 2;

const SLOTS = 16_384;

/**
 * What is known of the servers' clocks: what each has reported last, and how long ago by this process's own. Clocks of two servers are
 * never compared (S15), so each has its own report.
 */
export class ServerTime {
  readonly #reports = new Map<string, { readonly time: number; readonly heardAt: number }>();

  /** @param time that the server reported, and `heardAt` when, on this process's clock */
  report(server: string, time: number, heardAt: number): void {
    if (this.#reports.size >= MOST_SERVERS) this.#reports.clear();
    this.#reports.set(server, { time, heardAt });
  }

  /**
   * The moment on the server's clock that is surely no later than `waitMs` from `now` on this process's clock; undefined where the server
   * has not reported lately. The time that the report was under way makes it earlier, never later.
   */
  deadline(server: string, now: number, waitMs: number): number | undefined {
    const report = this.#reports.get(server);
    if (report === undefined) return undefined;
    const elapsed = now - report.heardAt;
    return elapsed > USEFUL_MS ? undefined : report.time + elapsed + waitMs - ROUNDING_MS;
  }
}

/** Names the server that a key's commands go to, by the client's own table of slots; a stale table costs one report in the wrong place. */
export function serverOf(client: object, key: string): string {
  const { slots } = client as { readonly slots?: unknown };
  if (!Array.isArray(slots)) return '';
  const slot = slotOf(key);
  const owner: unknown = slots[slot];
  // ioredis lists a slot's addresses, the master's first; node-redis has an object.
  const address: unknown = Array.isArray(owner)
    ? owner[0]
    : (owner as { readonly master?: { readonly address?: unknown } } | undefined)?.master?.address;
  return typeof address === 'string' ? address : `slot ${slot}`;
}

/** The slot of a key with a hash tag: CRC-16 (XMODEM) of what stands in the braces. */
export function slotOf(key: string): number {
  const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'));
  let crc = 0;
  for (const byte of new TextEncoder().encode(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
    crc &= 0xffff;
  }
  return crc % SLOTS;
}
