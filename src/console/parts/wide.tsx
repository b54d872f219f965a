import type { ComponentChildren } from 'preact';

/** A table that is wider than a small screen: it scrolls by itself, also by keyboard. */
export function Wide({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard cannot scroll the table
    <section class="wide" aria-label={`${label}, table`} tabIndex={0}>
      {children}
    </section>
  );
}
