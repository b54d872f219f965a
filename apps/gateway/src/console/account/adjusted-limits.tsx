import { useEffect } from 'preact/hooks';
import type { Limit } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { Setter } from '../limits/current-limit.tsx';
import { windowsText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import type { Target } from '../parts/target.ts';
import { may } from '../session.ts';

const EVERY_MS = 5_000;
const MOST = 500;

/** The limits that operators set for an account, with the operator, the reason and the end. */
export function AdjustedLimits({
  account,
  changes,
  onPutBack,
}: {
  account: string;
  /** Number of the operator's changes of limits: each change makes the list read at once. */
  changes: number;
  onPutBack: (target: Target) => void;
}) {
  const { value, error, refresh } = usePolled(account, EVERY_MS, (signal) =>
    ask<{ limits: Limit[] }>('GET', 'v1/limits', {
      query: { layer: 'account', name: account, adjusted: true, limit: MOST },
      signal,
    }),
  );
  useEffect(() => {
    if (changes > 0) refresh();
  }, [changes]);
  return (
    <>
      <ErrorNotice error={error} />
      {value && value.limits.length > 0 && (
        <section class="card" aria-labelledby="adjusted">
          <h2 id="adjusted">Adjusted by operators</h2>
          <ul class="list">
            {value.limits.map(({ target, adjusted }) => {
              const name = target.route ?? 'All methods';
              return (
                adjusted && (
                  <li key={name} class="row">
                    <span>
                      {name}: <strong>{windowsText(adjusted.windows)}</strong> <Setter adjusted={adjusted} />
                    </span>
                    {may('operator') && (
                      <button
                        type="button"
                        class="quiet"
                        aria-label={`Put it back: ${name}`}
                        onClick={() => onPutBack(target)}
                      >
                        Put it back
                      </button>
                    )}
                  </li>
                )
              );
            })}
          </ul>
        </section>
      )}
    </>
  );
}
