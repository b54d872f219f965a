import { Choice, Field } from './field.tsx';

/** When something ends: never, after so many milliseconds, or at the operator's date and time. */
export interface Ending<End extends string> {
  readonly end: End | 'at';
  readonly at: string;
}

/** Asks when a change ends. */
export function EndFields<End extends string>({
  ends,
  value: { end, at },
  onValue,
}: {
  /** The choices before a date and time. */
  ends: readonly (readonly [End, string])[];
  value: Ending<End>;
  onValue: (value: Ending<End>) => void;
}) {
  return (
    <>
      <Choice
        label="Ends"
        value={end}
        options={[...ends, ['at', 'At a time']]}
        onValue={(value) => onValue({ end: value, at })}
      />
      {end === 'at' && (
        <Field
          label="Date and time"
          hint="In your own time zone, at most a year from now."
          type="datetime-local"
          step={1}
          required
          value={at}
          onValue={(value) => onValue({ end, at: value })}
        />
      )}
    </>
  );
}

/** The end in the form of a request. */
export function endOfRequest({ end, at }: Ending<string>): { readonly until: string } | { readonly forMs: number } {
  return end === 'at' ? { until: new Date(at).toISOString() } : { forMs: Number(end) };
}
