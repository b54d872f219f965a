import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Limit, LimitPreview } from '../api/answers.ts';
import { Announced } from '../parts/announced.tsx';
import { timeText, windowsText } from '../parts/format.ts';
import { ReasonField } from '../parts/reason-field.tsx';
import { Affected, affectedText } from './affected.tsx';
import { type Draft, endOf } from './draft.ts';
import { Warnings } from './warnings.tsx';

/** The effect of a change, and the button that applies it. */
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
  // The operator must see the button as well as the effect.
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
      <Warnings warnings={warnings} isConfirmed={isConfirmed} onConfirmed={setConfirmed} />
      <ReasonField
        hint="The account and the history show it."
        value={draft.reason}
        onValue={(reason) => onDraft({ ...draft, reason })}
      />
      <button type="submit" aria-disabled={isBusy}>
        Apply
      </button>
      <Affected now={now} />
    </form>
  );
}
