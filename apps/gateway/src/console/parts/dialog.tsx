import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { replaceWith } from '../route.ts';
import { enterWindow } from './open-windows.ts';

/** A window over the page. Escape, Back and the button at its top close it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Not later: the next key may already be pressed when an effect after the painting would move the focus.
  useLayoutEffect(() => {
    const { current } = dialog;
    const before = document.activeElement;
    current?.showModal();
    const leave = enterWindow(() => current?.close());
    return () => {
      leave();
      // Nothing else can take the focus while it is open.
      current?.close();
      // The element that opened it may be gone.
      const focused = before?.isConnected ? before : document.querySelector('h1');
      if (focused instanceof HTMLElement) focused.focus();
    };
  }, []);
  // The page that a link shows takes the place of the window: Back does not return to a closed one.
  const onClick = (event: MouseEvent): void => {
    const link = event.target instanceof Element && event.target.closest<HTMLAnchorElement>('a[href^="#"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    replaceWith(link.hash);
    dialog.current?.close();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        // The event `close` comes later, perhaps after the next key.
        event.preventDefault();
        onClose();
      }}
      onClose={() => dialog.current && onClose()}
      onClick={onClick}
    >
      <div class="dialog-title">
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  );
}
