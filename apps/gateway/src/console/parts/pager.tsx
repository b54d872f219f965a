import { useState } from 'preact/hooks';

/** An operator's place in a list of several pages. */
export interface Pages {
  /** The cursor of the current page; undefined for the first page. */
  readonly cursor: string | undefined;
  turn(next: string | undefined): void;
}

/** @param key names the list; another key begins with its first page */
export function usePages(key: string): Pages {
  const [at, setAt] = useState<{ key: string; cursors: readonly string[] }>({ key, cursors: [] });
  const cursors = at.key === key ? at.cursors : [];
  return {
    cursor: cursors.at(-1),
    turn: (next) => setAt({ key, cursors: next === undefined ? cursors.slice(0, -1) : [...cursors, next] }),
  };
}

/**
 * Turns the pages of a list.
 * @param next of the answer that is shown
 * @param names of the buttons
 */
export function Pager({
  pages: { cursor, turn },
  next,
  names = ['Previous page', 'Next page'],
}: {
  pages: Pages;
  next: string | number | null | undefined;
  names?: readonly [before: string, after: string];
}) {
  const hasNext = next !== null && next !== undefined;
  if (cursor === undefined && !hasNext) return null;
  return (
    <div class="actions">
      <button type="button" class="quiet" disabled={cursor === undefined} onClick={() => turn(undefined)}>
        {names[0]}
      </button>
      <button type="button" class="quiet" disabled={!hasNext} onClick={() => turn(String(next))}>
        {names[1]}
      </button>
    </div>
  );
}
