import { useLayoutEffect, useState } from 'preact/hooks';
import type { Connection, LiveEvents } from '../api/live-events.ts';
import { EventText } from './event-text.tsx';
import { countText, spanText } from './format.ts';
import { Notice } from './notice.tsx';
import { TraceDialog } from './trace-dialog.tsx';

/** Whether events come, and a button that lets the list pause. */
export function StreamState({ live }: { live: LiveEvents }) {
  const { connection, dropped, isPaused, pause } = live;
  return (
    <>
      <div class="row">
        <span class="soft">{stateText(live)}</span>
        <button type="button" class="quiet" onClick={() => pause(!isPaused)}>
          {isPaused ? 'Go on' : 'Pause'}
        </button>
      </div>
      {(connection.state === 'waiting' || connection.state === 'failed') && <Trouble connection={connection} />}
      {dropped > 0 && (
        <Notice kind="care">
          {countText(dropped, 'event')} were dropped, because they came faster than this page could read. Choose fewer:
          an account, an outcome or a sample.
        </Notice>
      )}
    </>
  );
}

function stateText({ connection: { state }, isPaused, isHeld, waiting }: LiveEvents): string {
  if (isPaused) return `Paused. ${countText(waiting, 'event')} came since.`;
  if (isHeld) return `The list stands still while you are in it: ${waiting} new.`;
  return state === 'open' ? 'Connected.' : state === 'connecting' ? 'Connecting …' : 'Not connected.';
}

function Trouble({ connection }: { connection: Exclude<Connection, { state: 'connecting' | 'open' }> }) {
  const { error, state } = connection;
  return (
    <Notice kind={state === 'failed' ? 'bad' : 'care'}>
      <p>{error?.message ?? 'The connection has ended.'}</p>
      {error?.status === 503 && <p>Close a page that shows events, in this browser or another, to make room.</p>}
      {connection.state === 'waiting' && <p>The console connects again in {spanText(connection.pauseMs)}.</p>}
    </Notice>
  );
}

/**
 * Events, the newest first. The list pauses while the pointer or the focus is in it. Each decision shows a button for
 * its trace.
 */
export function EventList({
  live: { events, hold },
  label,
  nothing,
  account,
}: {
  live: LiveEvents;
  label: string;
  nothing: string;
  /** Whose events they are, if they are of one account. */
  account?: string;
}) {
  const [traced, setTraced] = useState<string>();
  const [isPointedAt, setPointedAt] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const isAimedAt = isPointedAt || isFocused || traced !== undefined;
  // Not later: the row must not move away under the pointer.
  useLayoutEffect(() => hold(isAimedAt), [isAimedAt]);
  return (
    <>
      {events.length === 0 && <p class="soft">{nothing}</p>}
      <ol
        class="events"
        aria-label={label}
        onPointerEnter={() => setPointedAt(true)}
        onPointerLeave={() => setPointedAt(false)}
        onFocusIn={() => setFocused(true)}
        onFocusOut={() => setFocused(false)}
      >
        {events.map((event) => (
          <li key={event.key}>
            <EventText event={event} page={account} onTrace={setTraced} />
          </li>
        ))}
      </ol>
      {traced !== undefined && <TraceDialog requestId={traced} onClose={() => setTraced(undefined)} />}
    </>
  );
}
