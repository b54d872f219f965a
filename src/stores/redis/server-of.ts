const SLOTS = 16_384;

/**
 * Name of the server that executes a key's commands, from the client's table of slots. If that table is outdated, one
 * report is filed under the wrong server.
 */
export function serverOf(client: object, key: string): string {
  const { slots } = client as { readonly slots?: unknown };
  if (!Array.isArray(slots)) return '';
  const slot = slotOf(key);
  const owner: unknown = slots[slot];
  // ioredis keeps a list of addresses per slot, the master's first. node-redis keeps an object per slot.
  const address: unknown = Array.isArray(owner)
    ? owner[0]
    : (owner as { readonly master?: { readonly address?: unknown } } | undefined)?.master?.address;
  return typeof address === 'string' ? address : `slot ${slot}`;
}

/** The slot of a key with a hash tag: CRC-16 (XMODEM) of the text in the braces. */
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
