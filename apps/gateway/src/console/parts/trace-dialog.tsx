import type { Decision } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ONCE, usePolled } from '../api/polled.ts';
import { href } from '../route.ts';
import { Dialog } from './dialog.tsx';
import { costsText, spanText, timeText } from './format.ts';
import { ErrorNotice } from './notice.tsx';
import { WindowBar } from './window-bar.tsx';

/** One decision, with every window that it checked. */
export function TraceDialog({ requestId, onClose }: { requestId: string; onClose: () => void }) {
  const { value, error } = usePolled(requestId, ONCE, (signal) =>
    ask<Decision>('GET', 'v1/decisions', { query: { req_id: requestId }, signal }),
  );
  return (
    <Dialog title="One decision" onClose={onClose}>
      <ErrorNotice error={error} />
      {value && (
        <>
          <dl class="pairs">
            <dt>Outcome</dt>
            <dd>{value.outcome}</dd>
            <dt>At</dt>
            <dd>{timeText(value.at)}</dd>
            <dt>Account</dt>
            <dd>
              <a href={href('accounts', value.account)}>{value.account}</a>
            </dd>
            <dt>Route</dt>
            <dd>{value.route}</dd>
            {value.lane !== null && (
              <>
                <dt>Lane</dt>
                <dd>{value.lane}</dd>
              </>
            )}
            {value.group !== null && (
              <>
                <dt>Rejected by group</dt>
                <dd>{value.group}</dd>
              </>
            )}
            <dt>Cost</dt>
            <dd>{value.costs === undefined ? value.cost : costsText(value.costs)}</dd>
            <dt>req_id</dt>
            <dd>
              <code>{value.req_id}</code>
            </dd>
          </dl>
          {value.blocked && (
            <p class="notice bad">
              A block rejected it, before any window was checked. The block had {spanText(value.blocked.forMs)} left
              {value.blocked.reason === null ? '.' : `: ${value.blocked.reason}`}
            </p>
          )}
          {value.inFlight && (
            <p class="notice bad">
              Too many requests ran at the same time: {value.inFlight.running} of {value.inFlight.max}.
            </p>
          )}
          {value.impossible && (
            <p class="notice bad">It never passes: its cost is more than the limit of the last window below.</p>
          )}
          {!value.blocked && <h3>Every window that was checked, in order, as it was then</h3>}
          {!value.blocked && value.trace.length === 0 && (
            <p class="soft">None: the decision was made without the store.</p>
          )}
          <div class="list">
            {value.trace.map((each) => (
              <WindowBar key={`${each.group} ${each.limit} ${each.durationMs} ${each.unit}`} window={each} />
            ))}
          </div>
        </>
      )}
    </Dialog>
  );
}
