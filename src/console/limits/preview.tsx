import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Limit, LimitPreview } from '../api/answers.ts';
import { Announced } from '../parts/announced.tsx';
import { Field } from '../parts/field.tsx';
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
  limit: { base },
  isBusy,
  onDraft,
  onApply,
}: {
  preview: LimitPreview;
  draft: Draft;
  limit: Limit;
  isBusy: boolean;
  onDraft: (draft: Draft) => void;
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
            <dd>
              {end === undefined
                ? 'never'
                : `${timeText(end)}, then ${base === null ? 'the limit of another layer applies' : `as in the config: ${windowsText(base)}`}`}
            </dd>
          </>
        )}
      </dl>
      {accounts && <p>{affectedText(accounts.affected, now)}</p>}
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
      <Field
        label="Reason"
        hint="The account and the history show it."
        autocomplete="off"
        maxLength={500}
        value={draft.reason}
        onValue={(reason) => onDraft({ ...draft, reason })}
      />
      <button type="submit" aria-disabled={isBusy}>
        Apply
      </button>
      {now.length > 0 && <Affected now={now} />}
    </form>
  );
}

function affectedText(affected: number, now: LimitPreview['now']): string {
  const rejected = now.filter(({ wouldReject }) => wouldReject).length;
  const first = `${countText(affected, 'account')} that this process has seen lately would get another limit.`;
  if (now.length === 0) return first;
  const of = now.length === affected ? 'them' : `the ${now.length} busiest`;
  return `${first} Of ${of}, ${numberText(rejected)} would be rejected now.`;
}

/** The accounts that would get other limits, the ones that would be rejected first. */
function Affected({ now }: Pick<LimitPreview, 'now'>) {
  return (
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
  );
}
