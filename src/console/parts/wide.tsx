import type { ComponentChildren } from 'preact';

/**
 * A table that is wider than a small screen: it scrolls by itself, also by keyboard.
 * @param isTall whether it scrolls down by itself too
 */
export function Wide({
  label,
  isTall = false,
  children,
}: {
  label: string;
  isTall?: boolean;
  children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard cannot scroll the table
    <section class={isTall ? 'wide tall' : 'wide'} aria-label={isTall ? label : `${label}, table`} tabIndex={0}>
      {children}
    </section>
  );
}
