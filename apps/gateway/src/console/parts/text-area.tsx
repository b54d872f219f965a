import { useId } from 'preact/hooks';

/** A labelled text of several lines, with a hint or its mistake below. */
export function TextArea({
  label,
  hint,
  fault,
  value,
  rows = 4,
  onValue,
}: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  value: string;
  rows?: number;
  onValue: (value: string) => void;
}) {
  const id = useId();
  const below = fault ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        spellcheck={false}
        value={value}
        aria-invalid={fault !== undefined}
        aria-describedby={below && `${id}-below`}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      {below && (
        <p class={fault === undefined ? 'soft' : 'fault'} id={`${id}-below`}>
          {below}
        </p>
      )}
    </div>
  );
}
