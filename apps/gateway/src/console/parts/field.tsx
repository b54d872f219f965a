import type { InputHTMLAttributes, TargetedEvent } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** A labelled input, with a hint or its value's mistake below. */
export function Field({
  label,
  hint,
  fault: given,
  blankFault,
  value,
  onValue,
  ...rest
}: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  /** Says that something is needed. Spaces are nothing. Without this text the field may be empty. */
  blankFault?: string | undefined;
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
  const input = useRef<HTMLInputElement>(null);
  const [isRefused, setRefused] = useState(false);
  const blank = value.trim() === '' ? blankFault : undefined;
  useLayoutEffect(() => input.current?.setCustomValidity(blank ?? ''), [blank]);
  const fault = given ?? (isRefused ? blank : undefined);
  // The bubble of the browser would hide the page's text below the field.
  const refuse = (event: TargetedEvent<HTMLInputElement>): void => {
    const { form } = event.currentTarget;
    event.preventDefault();
    setRefused(true);
    if (form?.querySelector(':is(input, select, textarea):invalid') === event.currentTarget)
      event.currentTarget.focus();
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...(rest as InputHTMLAttributes)}
        ref={input}
        id={id}
        value={value}
        aria-describedby={(fault ?? hint) && `${id}-hint`}
        aria-invalid={fault !== undefined}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
        onInvalid={(event) => blank !== undefined && refuse(event)}
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
