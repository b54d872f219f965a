import { useState } from 'preact/hooks';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
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
  // The lease runs on while the dialog is open, but the question stays the same.
  const [leftMs] = useState(leaseMs);
  const isForced = leftMs > 0;
  const [typed, setTyped] = useState('');
  return (
    <ActionDialog
      title={`Release ${key} of ${application}?`}
      button={isForced ? 'Release by force' : 'Release'}
      isDanger
      isReady={!isForced || typed === key}
      work={async (reason) => {
        const { outcome } = await ask<{ outcome: string }>('POST', 'v1/claims/release', {
          body: { application, key, force: isForced, reason },
        });
        onDone(`${outcome}: the next retry is executed.`);
      }}
      onClose={onClose}
      fields={
        isForced && (
          <Field
            label="Type the key to release it by force"
            autocomplete="off"
            required
            hint={key}
            value={typed}
            onValue={setTyped}
          />
        )
      }
    >
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
    </ActionDialog>
  );
}
