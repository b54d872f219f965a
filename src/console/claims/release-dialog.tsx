import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionError } from '../parts/action-error.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { spanText } from '../parts/format.ts';
import { Notice } from '../parts/notice.tsx';

/** Frees a key whose request was not executed. */
export function ReleaseDialog({
  claim: { application, key, leaseMs },
  onDone,
  onClose,
}: {
  claim: Claim;
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  // The lease goes on while the dialog is open: what was asked stays.
  const [leftMs] = useState(leaseMs);
  const isForced = leftMs > 0;
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const { run, isRunning, error } = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isForced && typed !== key) return;
    run(async () => {
      const { outcome } = await ask<{ outcome: string }>('POST', 'v1/claims/release', {
        body: { application, key, force: isForced, reason },
      });
      onDone(`${outcome}: the next retry is executed.`);
      onClose();
    });
  };
  return (
    <Dialog title={`Release ${key} of ${application}?`} onClose={onClose}>
      <p>
        The key becomes free, and the next retry is executed. If the provider has executed the request already, it is
        executed a second time.
      </p>
      {isForced && (
        <Notice kind="care">
          A process still works on this request: its lease expires in {spanText(leftMs)}. If it lives, this takes the
          claim away from it.
        </Notice>
      )}
      <form onSubmit={submit}>
        {isForced && (
          <Field
            label="Type the key to release it by force"
            autocomplete="off"
            required
            hint={key}
            value={typed}
            onValue={setTyped}
          />
        )}
        <Field label="Reason" autocomplete="off" hint="The log has it." value={reason} onValue={setReason} />
        <ActionError error={error} />
        <div class="actions">
          <button type="submit" class="danger" disabled={isRunning || (isForced && typed !== key)}>
            {isForced ? 'Release by force' : 'Release'}
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
