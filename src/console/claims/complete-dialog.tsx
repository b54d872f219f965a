import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionError } from '../parts/action-error.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { TextArea } from '../parts/text-area.tsx';
import { type AnswerDraft, type DraftFaults, readDraft } from './answer-draft.ts';

const EMPTY: AnswerDraft = { status: '200', headers: '{"content-type": "application/json"}', body: '' };

/** Stores the outcome of a request that the provider has executed. */
export function CompleteDialog({
  claim: { application, key },
  onDone,
  onClose,
}: {
  claim: Claim;
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(EMPTY);
  const [faults, setFaults] = useState<DraftFaults>({});
  const [reason, setReason] = useState('');
  const { run, isRunning, error } = useAction();
  const set = (change: Partial<AnswerDraft>): void => setDraft({ ...draft, ...change });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const { answer, faults: found = {} } = readDraft(draft);
    setFaults(found);
    if (answer === undefined) return;
    run(async () => {
      const { outcome } = await ask<{ outcome: string }>('POST', 'v1/claims/complete', {
        body: { application, key, answer, reason },
      });
      onDone(`${outcome}: every retry gets status ${answer.status} from now on.`);
      onClose();
    });
  };
  return (
    <Dialog title={`Complete ${key} of ${application}`} onClose={onClose}>
      <p>
        Every retry with this key gets this answer, and the request is never sent again. An outcome cannot be changed
        later.
      </p>
      <form onSubmit={submit}>
        <Field
          label="Status"
          type="number"
          required
          min={200}
          value={draft.status}
          onValue={(status) => set({ status })}
        />
        <TextArea
          label="Headers"
          rows={3}
          hint="JSON."
          fault={faults.headers}
          value={draft.headers}
          onValue={(headers) => set({ headers })}
        />
        <TextArea label="Body" fault={faults.body} value={draft.body} onValue={(body) => set({ body })} />
        <Field
          label="Reason"
          autocomplete="off"
          hint="Such as who said it. The log has it."
          value={reason}
          onValue={setReason}
        />
        <ActionError error={error} />
        <div class="actions">
          <button type="submit" disabled={isRunning}>
            Complete
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
