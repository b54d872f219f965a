import type { Limit } from '../api/answers.ts';
import type { ApiError } from '../api/client.ts';
import { Announced } from '../parts/announced.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import type { Target } from '../parts/target.ts';
import { CurrentLimit } from './current-limit.tsx';
import { useLimit } from './use-limit.ts';

/** A process reads changes twice a second. */
const READ_AFTER_MS = 1_000;

/** The gateway did not say whether the change was stored. Reads the limit again, and shows it. */
export function Unsure({ target, seen, error }: { target: Target; seen: Limit; error: ApiError }) {
  const { limit, error: readError, read } = useLimit(target, READ_AFTER_MS);
  const isChanged = limit && limit.adjusted?.version !== seen.adjusted?.version;
  return (
    <section class="card">
      <Announced>The change may have been stored</Announced>
      <ErrorNotice error={error} />
      <ErrorNotice error={readError} />
      <p role="status">
        {limit === undefined
          ? 'The limit is read again …'
          : isChanged
            ? 'The limit has changed since you looked:'
            : 'The limit is as before. While the store is away, a stored change may still show up later.'}
      </p>
      {limit && <CurrentLimit limit={limit} />}
      <div class="actions">
        <button type="button" onClick={read}>
          Read again
        </button>
      </div>
    </section>
  );
}
