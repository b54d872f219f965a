/** Things to choose any number of. */
export function Boxes<Value extends string>({
  label,
  options,
  chosen,
  onChosen,
}: {
  label: string;
  options: readonly (readonly [value: Value, text: string])[];
  chosen: readonly Value[];
  onChosen: (chosen: readonly Value[]) => void;
}) {
  const set = (value: Value, isOn: boolean): void =>
    onChosen(options.flatMap(([each]) => ((each === value ? isOn : chosen.includes(each)) ? [each] : [])));
  return (
    <fieldset class="boxes">
      <legend>{label}</legend>
      {options.map(([value, text]) => (
        <label key={value}>
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={({ currentTarget }) => set(value, currentTarget.checked)}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
