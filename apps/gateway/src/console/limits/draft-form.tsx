import { useRef } from 'preact/hooks';
import type { Limit } from '../api/answers.ts';
import { EndFields } from '../parts/end-fields.tsx';
import { Choice, Field } from '../parts/field.tsx';
import { windowsText } from '../parts/format.ts';
import { ownText } from './current-limit.tsx';
import type { Draft, End, Wish } from './draft.ts';

const ENDS: readonly (readonly [Exclude<End, 'at'>, string])[] = [
  ['never', 'Never'],
  ['900000', 'In 15 minutes'],
  ['3600000', 'In 1 hour'],
  ['86400000', 'In 1 day'],
];

/** Asks for the new limit and its duration. */
export function DraftForm({
  draft,
  limit: { base, recommended },
  faults,
  isBusy,
  onDraft,
  onSubmit,
}: {
  draft: Draft;
  limit: Limit;
  /** Mistakes by the index of the window. */
  faults: ReadonlyMap<number, string>;
  isBusy: boolean;
  onDraft: (draft: Draft) => void;
  onSubmit: () => void;
}) {
  const { wish, windows, end, at } = draft;
  const set = (changed: Partial<Draft>): void => onDraft({ ...draft, ...changed });
  const wishes: readonly (readonly [Wish, string])[] = [
    ['windows', 'Windows of my own'],
    ...(recommended === null
      ? []
      : ([['recommended', `Headgate's recommendation: ${windowsText(recommended)}`]] as const)),
    ['none', 'No limit'],
    ['reset', `As in the config: ${ownText(base)}`],
  ];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <Choice label="New limit" value={wish} options={wishes} onValue={(value) => set({ wish: value })} />
      {wish === 'windows' && (
        <WindowRows windows={windows} faults={faults} onWindows={(value) => set({ windows: value })} />
      )}
      {wish !== 'reset' && <EndFields ends={ENDS} value={{ end, at }} onValue={set} />}
      <button type="submit" aria-disabled={isBusy}>
        Preview
      </button>
    </form>
  );
}

/** Windows such as `60/1m`, each on a row. A request must fit into all of them. */
function WindowRows({
  windows,
  faults,
  onWindows,
}: {
  windows: readonly string[];
  faults: ReadonlyMap<number, string>;
  onWindows: (windows: readonly string[]) => void;
}) {
  const rows = useRef<HTMLFieldSetElement>(null);
  // Adding or removing a row may lose the focus.
  const focus = (row: number): void => {
    setTimeout(() => rows.current?.querySelectorAll('input')[row]?.focus());
  };
  return (
    <fieldset ref={rows}>
      <legend>Windows</legend>
      <p class="soft">
        Requests per span, such as <code>60/1m</code>. Units: ms, s, m, h, d. A request must fit into every window.
      </p>
      {windows.map((text, row) => (
        <div class="window-row" key={row}>
          <Field
            label={`Window ${row + 1}`}
            autocomplete="off"
            placeholder="60/1m"
            required
            fault={faults.get(row)}
            value={text}
            onValue={(value) => onWindows(windows.with(row, value))}
          />
          {windows.length > 1 && (
            <button
              type="button"
              class="quiet"
              aria-label={`Remove window ${row + 1}`}
              onClick={() => {
                onWindows(windows.toSpliced(row, 1));
                focus(Math.max(0, row - 1));
              }}
            >
              Remove
            </button>
          )}
        </div>
      ))}
      <button
        type="button"
        class="quiet"
        onClick={() => {
          onWindows([...windows, '']);
          focus(windows.length);
        }}
      >
        Add a window
      </button>
    </fieldset>
  );
}
