import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

let isFirst = true;

/** The heading of a page. It gets the focus if the page changes, so that the keyboard and the screen reader begin there. */
export function PageTitle({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · headgate`;
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, [title]);
  return (
    <div class="page-title">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </div>
  );
}
