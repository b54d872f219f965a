import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/**
 * A table that is wider than a small screen: it scrolls by itself, also by keyboard, and says so if a part of it is
 * hidden.
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
  const box = useRef<HTMLElement>(null);
  const [isCut, setCut] = useState(false);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const sizes = new ResizeObserver(() => setCut(current.scrollWidth > current.clientWidth));
    // The box changes its size with the window, and the table with its text.
    for (const each of [current, ...current.children]) sizes.observe(each);
    return () => sizes.disconnect();
  }, []);
  return (
    <div class="wide-frame">
      {isCut && (
        <p class="soft" aria-hidden="true">
          Scroll sideways for more →
        </p>
      )}
      <section
        ref={box}
        class={isTall ? 'wide tall' : 'wide'}
        aria-label={isTall ? label : `${label}, table`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard cannot scroll the table
        tabIndex={0}
      >
        {children}
      </section>
    </div>
  );
}
