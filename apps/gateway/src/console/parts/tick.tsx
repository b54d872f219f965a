import type { ComponentChildren } from 'preact';

/** A box to tick, with its text. */
export function Tick({
  value,
  onValue,
  required,
  children,
}: {
  value: boolean;
  onValue: (value: boolean) => void;
  required?: boolean;
  children: ComponentChildren;
}) {
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={value}
        required={required}
        onChange={({ currentTarget }) => onValue(currentTarget.checked)}
      />
      <span>{children}</span>
    </label>
  );
}
