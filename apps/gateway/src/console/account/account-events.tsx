import { useLiveEvents } from '../api/live-events.ts';
import { EventList, StreamState } from '../parts/events.tsx';
import { href } from '../route.ts';

const MOST = 50;

/** The last decisions about an account. */
export function AccountEvents({ account }: { account: string }) {
  const live = useLiveEvents({ account }, MOST);
  return (
    <section class="card" aria-labelledby="events">
      <div class="row">
        <h2 id="events">Last decisions of this gateway</h2>
        <a href={href('live', undefined, { account })}>Open in Live</a>
      </div>
      <StreamState live={live} />
      <EventList
        account={account}
        live={live}
        label={`Decisions about ${account}`}
        nothing="No decision is remembered."
      />
    </section>
  );
}
