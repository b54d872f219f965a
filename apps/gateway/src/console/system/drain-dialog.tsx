import { useState } from 'preact/hooks';
import type { Status } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { status } from '../api/status.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { countText, numberText } from '../parts/format.ts';

/** Takes the process out of its load balancer, or puts it back. */
export function DrainDialog({
  now: { instance, state, perSecond },
  others,
  onClose,
}: {
  now: Status;
  /** Other processes with the same store; undefined if that is not known. */
  others: number | undefined;
  onClose: () => void;
}) {
  // The state changes while the dialog is open, but the question stays the same.
  const [isDraining] = useState(state === 'draining');
  const othersText =
    others === 0
      ? 'No other process with this store was heard of.'
      : `${countText(others ?? 0, 'other process', 'other processes')} with this store would go on.`;
  const served = `It accepts ${numberText(perSecond.accepted)} requests per second now.`;
  return (
    <ActionDialog
      title={isDraining ? 'End the draining' : 'Drain this gateway'}
      button={isDraining ? 'End the draining' : 'Drain'}
      work={async (reason) => {
        const path = isDraining ? 'v1/undrain' : 'v1/drain';
        const answer = await ask<Pick<Status, 'state'>>('POST', path, { body: { reason } });
        if (status.value !== undefined) status.value = { ...status.value, ...answer };
      }}
      onClose={onClose}
    >
      {isDraining ? (
        <p>
          <code>/readyz</code> of {instance} will answer 200 again, so that a load balancer sends requests to it.
        </p>
      ) : (
        <>
          <p>
            <code>/readyz</code> of {instance} will answer 503, so that a load balancer sends its requests to other
            processes. {served} {others !== undefined && othersText}
          </p>
          <p>The process serves on whatever still reaches it. Only SIGTERM ends it.</p>
        </>
      )}
    </ActionDialog>
  );
}
