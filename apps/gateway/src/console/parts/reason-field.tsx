import { Field } from './field.tsx';

/** Asks why a change is made. The console makes none without a reason. */
export function ReasonField({
  hint,
  maxLength = 500,
  value,
  onValue,
}: {
  /** Who reads it. */
  hint: string;
  /** Most characters that the gateway accepts. */
  maxLength?: number | undefined;
  value: string;
  onValue: (reason: string) => void;
}) {
  return (
    <Field
      label="Reason"
      hint={hint}
      blankFault="Type a reason, such as the number of a ticket."
      required
      autocomplete="off"
      maxLength={maxLength}
      value={value}
      onValue={onValue}
    />
  );
}
