import type { InputHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

/** A labelled input, with a hint below, or with what is wrong with its value. */
export function Field({
  label,
  hint,
  fault,
  value,
  onValue,
  ...rest
}: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  value: string;
  onValue: (value: string) => void;
  type?: 'text' | 'password' | 'search' | 'number' | 'datetime-local';
  min?: number;
  step?: number;
  autocomplete?: 'off';
  placeholder?: string;
  required?: boolean;
  maxLength?: number;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...(rest as InputHTMLAttributes)}
        id={id}
        value={value}
        aria-describedby={(fault ?? hint) && `${id}-hint`}
        aria-invalid={fault !== undefined}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      {(fault ?? hint) && (
        <p class={fault === undefined ? 'soft' : 'fault'} id={`${id}-hint`}>
          {fault ?? hint}
        </p>
      )}
    </div>
  );
}

/** A labelled list to choose from. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  onValue,
}: {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, text: string])[];
  onValue: (value: Value) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onValue(currentTarget.value as Value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}
