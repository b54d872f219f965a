const MAX_MS = 5_000;

/**
 * Reads the rest of a body that is refused, and forgets it. A client that is still sending would otherwise see a broken
 * connection in place of the error. Gives up after `maxBytes`, or after a few seconds: the connection is closed then.
 */
export async function readRest(body: AsyncIterator<Uint8Array>, maxBytes: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, MAX_MS, undefined);
  });
  try {
    for (let size = 0; size <= maxBytes; ) {
      const next = await Promise.race([body.next(), timeout]);
      if (next === undefined || next.done === true) return;
      size += next.value.length;
    }
  } catch {
    // The client disconnected.
  } finally {
    clearTimeout(timer);
  }
}
