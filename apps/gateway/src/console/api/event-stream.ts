import { open, type Query } from './client.ts';

/** One server-sent event. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: unknown;
}

/**
 * Reads `v1/events` until `signal` aborts or the gateway ends it. The browser's EventSource cannot send a token.
 * @throws ApiError
 */
export async function readEvents(
  query: Query,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
  onOpen: () => void,
): Promise<void> {
  const { body } = await open('GET', 'v1/events', { query, signal });
  onOpen();
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = eventOf(block);
      if (event !== undefined) onEvent(event);
    }
  }
}

/** A block without data is a comment. */
function eventOf(block: string): StreamEvent | undefined {
  const fields = new Map(
    block.split('\n').flatMap((line) => {
      const at = line.indexOf(': ');
      return at > 0 ? [[line.slice(0, at), line.slice(at + 2)]] : [];
    }),
  );
  const data = fields.get('data');
  if (data === undefined) return undefined;
  return { id: fields.get('id'), type: fields.get('event') ?? 'message', data: JSON.parse(data) };
}
