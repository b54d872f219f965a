import type { Limit } from '../api/answers.ts';
import { timeText } from '../parts/format.ts';
import type { Preset } from './draft.ts';

/** Buttons for what operators often want. Each leads to its preview. */
export function Presets({
  presets,
  limit: { adjusted },
  onPreset,
}: {
  presets: readonly Preset[];
  limit: Limit;
  onPreset: (preset: Preset) => void;
}) {
  if (presets.length === 0) return null;
  const span =
    adjusted === null ? 'for 1 hour' : adjusted.until === null ? 'without an end' : `until ${timeText(adjusted.until)}`;
  return (
    <fieldset class="boxes">
      <legend>Give more, {span}</legend>
      {presets.map((preset) => (
        <button key={preset.name} type="button" onClick={() => onPreset(preset)}>
          {preset.name}: {preset.windows.join(', ')}
        </button>
      ))}
    </fieldset>
  );
}
