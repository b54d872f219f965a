import type { Limit, LimitChanged } from '../api/answers.ts';
import { Announced } from '../parts/announced.tsx';
import { Notice } from '../parts/notice.tsx';
import type { Target } from '../parts/target.ts';
import { href, route } from '../route.ts';
import { CurrentLimit } from './current-limit.tsx';

/** A change that is stored, and the processes that obey it. */
export function Applied({
  target: { account },
  limit,
  onClose,
}: {
  target: Target;
  limit: Limit & LimitChanged;
  onClose: () => void;
}) {
  const { applied, durable } = limit;
  return (
    <>
      <Announced>The limit is changed</Announced>
      {applied && (
        <Notice kind={applied.missing.length === 0 ? 'good' : 'care'}>
          <p>
            {applied.instances} of {applied.of} processes obey.
          </p>
          {applied.missing.length > 0 && <p>These do not yet: {applied.missing.join(', ')}.</p>}
        </Notice>
      )}
      {!durable && <Notice kind="care">The change ends with the process.</Notice>}
      <CurrentLimit limit={limit} />
      <div class="actions">
        <button type="button" onClick={onClose}>
          Done
        </button>
        {account !== undefined && route.value.page !== 'accounts' && <a href={href('accounts', account)}>{account}</a>}
      </div>
    </>
  );
}
