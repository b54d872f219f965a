import { useEffect, useState } from 'preact/hooks';
import type { ShadowState } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { Choice } from '../parts/field.tsx';
import { TextArea } from '../parts/text-area.tsx';
import { STORES } from './candidate-card.tsx';

const SAMPLES = [
  ['1', 'All'],
  ['0.1', '1 of 10'],
  ['0.01', '1 of 100'],
] as const;
type Sample = (typeof SAMPLES)[number][0];

/** Asks for limits to try. It begins with the candidate's limits, or else with the current limits. */
export function StartDialog({
  candidate,
  onDone,
  onClose,
}: {
  candidate: ShadowState['candidate'];
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const [text, setText] = useState(candidate === null ? '' : JSON.stringify(candidate.limits, null, 2));
  const [sample, setSample] = useState<Sample>('1');
  const [store, setStore] = useState<'same' | 'memory'>(candidate?.store ?? 'same');
  const [fault, setFault] = useState<string>();
  useEffect(() => {
    if (candidate !== null) return;
    ask<unknown>('GET', 'v1/limits/export').then(
      (limits) => setText((typed) => typed || JSON.stringify(limits, null, 2)),
      // Without it, the operator types them all.
      () => {},
    );
  }, []);
  const start = async (limits: unknown, reason: string): Promise<void> => {
    await ask('PUT', 'v1/shadow', { body: { limits, sample: Number(sample), store, reason } });
    onDone('The candidate runs.');
  };
  return (
    <ActionDialog
      title="Try other limits"
      button="Start"
      reasonHint="This page and the log show it."
      work={(reason) => {
        setFault(undefined);
        try {
          return start(JSON.parse(text), reason);
        } catch (error) {
          setFault(`This is not JSON: ${(error as Error).message}`);
          return undefined;
        }
      }}
      onClose={onClose}
      fields={
        <>
          <TextArea
            label="Limits"
            hint="In the form that limits have in the config."
            rows={14}
            fault={fault}
            value={text}
            onValue={setText}
          />
          <Choice label="Accounts" value={sample} options={SAMPLES} onValue={setSample} />
          <Choice label="Counters in" value={store} options={STORES} onValue={setStore} />
        </>
      }
    >
      <p>
        Every gateway with this store decides by these limits too, and answers as before.
        {candidate !== null && ' They replace the candidate of now, and the figures begin at 0.'}
      </p>
    </ActionDialog>
  );
}
