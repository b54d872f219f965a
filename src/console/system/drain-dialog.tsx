import { useState } from 'preact/hooks';
import type { Status } from '../api/answers.ts';
import { ApiError, ask } from '../api/client.ts';
import { status } from '../api/status.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { countText, numberText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';

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
  // The state changes while the dialog is open: what was asked stays.
  const [isDraining] = useState(state === 'draining');
  const [reason, setReason] = useState('');
  const [error, setError] = useState<ApiError>();
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    try {
      const answer = await ask<Pick<Status, 'state'>>('POST', isDraining ? 'v1/undrain' : 'v1/drain', {
        body: { reason },
      });
      if (status.value !== undefined) status.value = { ...status.value, ...answer };
      onClose();
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(0, String(caught)));
    }
  };
  const othersText =
    others === 0
      ? 'No other process with this store was heard of.'
      : `${countText(others ?? 0, 'other process', 'other processes')} with this store would go on.`;
  const served = `It accepts ${numberText(perSecond.accepted)} requests per second now.`;
  return (
    <Dialog title={isDraining ? 'End the draining' : 'Drain this process'} onClose={onClose}>
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
      <form onSubmit={(event) => void submit(event)}>
        <Field
          label="Reason"
          hint="The log has it."
          autocomplete="off"
          maxLength={500}
          value={reason}
          onValue={setReason}
        />
        <ErrorNotice error={error} />
        <button type="submit">{isDraining ? 'End the draining' : 'Drain'}</button>
      </form>
    </Dialog>
  );
}
