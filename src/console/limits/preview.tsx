import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LimitPreview } from '../api/answers.ts';
import { Announced } from '../parts/announced.tsx';
import { countText, numberText, timeText, windowsText } from '../parts/format.ts';
import { Notice } from '../parts/notice.tsx';
import { Tick } from '../parts/tick.tsx';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';
import { type Draft, endOf } from './draft.ts';

/** What a change would do, and the button that does it. */
export function Preview({
  preview: {
    changes: [change],
    accounts,
    now = [],
  },
  draft,
  isBusy,
  onApply,
}: {
  preview: LimitPreview;
  draft: Draft;
  isBusy: boolean;
  onApply: (confirm: boolean) => void;
}) {
  const [isConfirmed, setConfirmed] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // The operator must see the button as well as what it would do.
  useLayoutEffect(() => form.current?.scrollIntoView({ block: 'nearest' }), []);
  const warnings = change?.warnings ?? [];
  const end = endOf(draft);
  return (
    <form
      ref={form}
      class="preview"
      onSubmit={(event) => {
        event.preventDefault();
        onApply(isConfirmed);
      }}
    >
      <Announced>Preview</Announced>
      <dl class="pairs">
        <dt>Before</dt>
        <dd>{windowsText(change?.before ?? null)}</dd>
        <dt>After</dt>
        <dd>{windowsText(change?.after ?? null)}</dd>
        {draft.wish !== 'reset' && (
          <>
            <dt>Ends</dt>
            <dd>{end === undefined ? 'never' : timeText(end)}</dd>
          </>
        )}
      </dl>
      {accounts && <Affected affected={accounts.affected} now={now} />}
      {warnings.length > 0 && (
        <>
          <Notice kind="care">
            {warnings.map((warning) => (
              <p key={warning}>{warning}</p>
            ))}
          </Notice>
          <Tick value={isConfirmed} onValue={setConfirmed} required>
            I have read the warning, and I mean this change.
          </Tick>
        </>
      )}
      <button type="submit" aria-disabled={isBusy}>
        Apply
      </button>
    </form>
  );
}

/** The accounts that would get other limits, the ones that would be rejected first. */
function Affected({ affected, now }: { affected: number; now: NonNullable<LimitPreview['now']> }) {
  const rejected = now.filter(({ wouldReject }) => wouldReject).length;
  return (
    <>
      <p>
        {countText(affected, 'account')} of the last minutes would get another limit.{' '}
        {now.length > 0 &&
          `Of ${now.length === affected ? 'them' : `the ${now.length} busiest`}, ${numberText(rejected)} would be rejected now.`}
      </p>
      {now.length > 0 && (
        <Wide label="Accounts">
          <table>
            <thead>
              <tr>
                <th>Account</th>
                <th>Route</th>
                <th class="number">Used</th>
                <th>Next request</th>
              </tr>
            </thead>
            <tbody>
              {now.map(({ account, route, used, max, wouldReject }) => (
                <tr key={account}>
                  <td>
                    <a href={href('accounts', account)}>{account}</a>
                  </td>
                  <td>{route}</td>
                  <td class="number">
                    {numberText(used)} of {numberText(max)}
                  </td>
                  <td>
                    <span class={`badge ${wouldReject ? 'bad' : 'good'}`}>{wouldReject ? 'rejected' : 'accepted'}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
    </>
  );
}
