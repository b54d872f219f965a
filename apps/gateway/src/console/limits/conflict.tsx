import type { Limit } from '../api/answers.ts';
import type { ApiError } from '../api/client.ts';
import { Announced } from '../parts/announced.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import type { Target } from '../parts/target.ts';
import { CurrentLimit } from './current-limit.tsx';
import { useLimit } from './use-limit.ts';

/** Another operator was faster. Shows the limit of now, and lets the operator go on from there. */
export function Conflict({
  target,
  error,
  onLook,
}: {
  target: Target;
  error: ApiError;
  /** The operator saw the current limit. */
  onLook: (now: Limit) => void;
}) {
  const { limit, error: readError } = useLimit(target);
  return (
    <section class="card">
      <Announced>Another operator has changed this limit. Your change was not made.</Announced>
      <ErrorNotice error={error} />
      <ErrorNotice error={readError} />
      {limit && (
        <>
          <CurrentLimit limit={limit} />
          <div class="actions">
            <button type="button" onClick={() => onLook(limit)}>
              Look again
            </button>
          </div>
        </>
      )}
    </section>
  );
}
