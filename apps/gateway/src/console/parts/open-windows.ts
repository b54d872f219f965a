/**
 * The windows that are open over the page, the newest last. Each adds an entry to the browser's history, so Back closes
 * the window and stays on the page.
 */
const closers: (() => void)[] = [];
/** Whether an entry is being left, and its `popstate` is still to come. */
let isLeaving = false;

addEventListener('popstate', () => {
  isLeaving = false;
  for (const close of closers.splice(entries())) close();
});

/** How many windows are open in the current entry of the history. A reload keeps that figure. */
function entries(): number {
  return (history.state as { readonly windows?: number } | null)?.windows ?? 0;
}

/**
 * Registers an opened window.
 * @param close closes it. It is called once, unless the returned function was called before
 * @returns leaves the entry of the window
 */
export function enterWindow(close: () => void): () => void {
  const enter = (): void => {
    closers.push(close);
    if (entries() < closers.length) history.pushState({ windows: closers.length }, '');
  };
  // The window before it was just closed.
  if (isLeaving) addEventListener('popstate', enter, { once: true });
  else enter();
  return () => {
    removeEventListener('popstate', enter);
    const at = closers.indexOf(close);
    if (at === -1) return;
    closers.splice(at);
    if (entries() <= at) return;
    isLeaving = true;
    history.go(at - entries());
  };
}
