import { signal } from '@preact/signals';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const STORED = 'headgate-theme';
const theme = signal<Theme>(THEMES.find((each) => each === localStorage.getItem(STORED)) ?? 'system');
document.documentElement.dataset.theme = theme.value;

/** Light, dark, or the system's setting. */
export function ThemeChoice() {
  return (
    <select
      aria-label="Colours"
      class="quiet"
      value={theme.value}
      onChange={({ currentTarget }) => choose(currentTarget.value as Theme)}
    >
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

function choose(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORED, chosen);
  document.documentElement.dataset.theme = chosen;
  dispatchEvent(new Event('themechange'));
}
