import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api/client.ts';

/** Something to know, in a box. A bad one is read out at once. */
export function Notice({ kind, children }: { kind: 'good' | 'care' | 'bad'; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

/** Why the gateway did not do something. */
export function ErrorNotice({ error }: { error: ApiError | undefined }) {
  if (error === undefined) return null;
  return (
    <Notice kind="bad">
      <p>{error.message}</p>
      {error.requestId && <p class="soft">req_id {error.requestId}</p>}
    </Notice>
  );
}
