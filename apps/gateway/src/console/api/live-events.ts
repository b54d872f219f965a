import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, type Query } from './client.ts';
import { readEvents, type StreamEvent } from './event-stream.ts';

/** An event with a number that is unique on the page. */
export interface LiveEvent extends StreamEvent {
  readonly key: number;
}

/** State of the connection. `waiting`: the page tries again so many milliseconds after the connection failed. */
export type Connection =
  | { readonly state: 'connecting' | 'open' }
  | { readonly state: 'waiting'; readonly error: ApiError | undefined; readonly pauseMs: number }
  | { readonly state: 'failed'; readonly error: ApiError };

/** The last events, while they happen. */
export interface LiveEvents {
  /** The newest first. */
  readonly events: readonly LiveEvent[];
  readonly connection: Connection;
  /** Events that the gateway dropped because this client read too slowly. */
  readonly dropped: number;
  readonly isPaused: boolean;
  /** Events that arrived while the list is paused. */
  readonly waiting: number;
  /** Whether the pointer or the focus is in the list, so that it does not move. */
  readonly isHeld: boolean;
  /** Keeps the list as it is, or lets it go on. */
  pause(isPaused: boolean): void;
  /** The same, while the pointer or the focus is in the list. */
  hold(isHeld: boolean): void;
}

/** Many events may come in a second. To draw each of them at once would cost time, and an eye is not faster. */
const SHOW_EVERY_MS = 250;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

interface Shown {
  readonly events: readonly LiveEvent[];
  /** Events that arrived while the list was paused, the newest first. */
  readonly held: readonly LiveEvent[];
  readonly waiting: number;
  readonly dropped: number;
}
const NOTHING: Shown = { events: [], held: [], waiting: 0, dropped: 0 };

/**
 * Listens to events, and connects again if the connection ends. Begins with those that the gateway remembers. Does not
 * listen in a hidden tab: others need the place.
 * @param query filters; others begin anew
 * @param most events that are kept
 */
export function useLiveEvents(query: Query, most: number): LiveEvents {
  const [shown, setShown] = useState(NOTHING);
  const [connection, setConnection] = useState<Connection>({ state: 'connecting' });
  const [{ isPaused, isHeld }, setStill] = useState({ isPaused: false, isHeld: false });
  const isStill = useRef(false);
  const key = JSON.stringify(query);
  useEffect(() => {
    setShown(NOTHING);
    const show = (fresh: readonly LiveEvent[], dropped: number): void =>
      setShown((last) => {
        const isKept = isStill.current;
        const all = [...fresh, ...(isKept ? last.held : last.events)].slice(0, most);
        return {
          ...last,
          ...(isKept ? { held: all, waiting: last.waiting + fresh.length } : { events: all }),
          dropped: last.dropped + dropped,
        };
      });
    return listen(query, show, setConnection);
  }, [key, most]);
  useLayoutEffect(() => {
    isStill.current = isPaused || isHeld;
    if (!isStill.current)
      setShown(({ events, held, dropped }) => ({ ...NOTHING, events: [...held, ...events].slice(0, most), dropped }));
  }, [isPaused, isHeld]);
  return {
    events: shown.events,
    connection,
    dropped: shown.dropped,
    isPaused,
    waiting: shown.waiting,
    isHeld,
    pause: (on) => setStill((last) => ({ ...last, isPaused: on })),
    hold: (on) => setStill((last) => ({ ...last, isHeld: on })),
  };
}

let keys = 0;

/** Listens until the returned function is called. */
function listen(
  query: Query,
  show: (fresh: readonly LiveEvent[], dropped: number) => void,
  onConnection: (connection: Connection) => void,
): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  let fresh: LiveEvent[] = [];
  let dropped = 0;
  let last: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    timer = undefined;
    show(fresh, dropped);
    fresh = [];
    dropped = 0;
  };
  const onEvent = (event: StreamEvent): void => {
    last = event.id ?? last;
    if (event.type === 'dropped') dropped += countOf(event.data);
    else fresh.unshift({ ...event, key: ++keys });
    timer ??= setTimeout(flush, SHOW_EVERY_MS);
  };
  const run = async (): Promise<void> => {
    for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      await untilVisible(signal);
      onConnection({ state: 'connecting' });
      const error = await readOnce({ ...query, after: last ?? 0 }, signal, onEvent, () => {
        pauseMs = FIRST_PAUSE_MS;
        onConnection({ state: 'open' });
      });
      if (signal.aborted) return;
      if (document.visibilityState !== 'visible') continue;
      if (error !== undefined && !isPassing(error)) return onConnection({ state: 'failed', error });
      onConnection({ state: 'waiting', error, pauseMs });
      await delay(pauseMs, signal);
    }
  };
  void run();
  return () => {
    ended.abort();
    clearTimeout(timer);
  };
}

/** Listens until the connection ends or the tab is hidden. Returns why it failed. */
async function readOnce(
  query: Query,
  ended: AbortSignal,
  onEvent: (event: StreamEvent) => void,
  onOpen: () => void,
): Promise<ApiError | undefined> {
  const stopped = new AbortController();
  const stop = (): void => {
    if (ended.aborted || document.visibilityState !== 'visible') stopped.abort();
  };
  ended.addEventListener('abort', stop);
  document.addEventListener('visibilitychange', stop);
  try {
    await readEvents(query, stopped.signal, onEvent, onOpen);
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? error : undefined;
  } finally {
    ended.removeEventListener('abort', stop);
    document.removeEventListener('visibilitychange', stop);
  }
}

/** Whether the same request may succeed later. */
function isPassing({ status }: ApiError): boolean {
  return status === 0 || status === 429 || status >= 500;
}

function countOf(data: unknown): number {
  const count = (data as { count?: unknown } | null)?.count;
  return typeof count === 'number' ? count : 0;
}

function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (document.visibilityState !== 'visible' && !signal.aborted) return;
      document.removeEventListener('visibilitychange', check);
      signal.removeEventListener('abort', check);
      resolve();
    };
    document.addEventListener('visibilitychange', check);
    signal.addEventListener('abort', check);
    check();
  });
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
