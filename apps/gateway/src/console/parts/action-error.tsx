import type { ApiError } from '../api/client.ts';
import { Notice } from './notice.tsx';

/** Why a change was not made. If the store did not answer, the gateway cannot say whether it was. */
export function ActionError({ error }: { error: ApiError | undefined }) {
  if (error === undefined) return null;
  const isUnsure = error.status === 503 || error.status === 0;
  return (
    <Notice kind="bad">
      <p>{error.message}</p>
      {isUnsure && <p>It may have been done nevertheless. Look before you do it again.</p>}
      {error.requestId && <p class="soft">req_id {error.requestId}</p>}
    </Notice>
  );
}
