import { useState } from 'preact/hooks';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { Field } from '../parts/field.tsx';
import { TextArea } from '../parts/text-area.tsx';
import { type AnswerDraft, type DraftFaults, type ReadAnswer, readDraft } from './answer-draft.ts';

const EMPTY: AnswerDraft = { status: '200', headers: '{"content-type": "application/json"}', body: '' };

/** Stores the outcome of a request that the provider executed. */
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
  const set = (change: Partial<AnswerDraft>): void => setDraft({ ...draft, ...change });
  const complete = async (answer: ReadAnswer, reason: string): Promise<void> => {
    const { outcome } = await ask<{ outcome: string }>('POST', 'v1/claims/complete', {
      body: { application, key, answer, reason },
    });
    onDone(`${outcome}: every retry gets status ${answer.status} from now on.`);
  };
  return (
    <ActionDialog
      title={`Complete ${key} of ${application}`}
      button="Complete"
      reasonHint="Such as who said it. The log has it."
      work={(reason) => {
        const { answer, faults: found = {} } = readDraft(draft);
        setFaults(found);
        return answer && complete(answer, reason);
      }}
      onClose={onClose}
      fields={
        <>
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
        </>
      }
    >
      <p>
        Every retry with this key gets this answer, and the request is never sent again. An outcome cannot be changed
        later.
      </p>
    </ActionDialog>
  );
}
