import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import { ActionError } from './action-error.tsx';
import { Dialog } from './dialog.tsx';
import { ReasonField } from './reason-field.tsx';

/** Asks before an action: its effect, a reason, and a button that starts it. */
export function ActionDialog({
  title,
  button,
  isDanger = false,
  isReady = true,
  reasonHint = 'The log has it.',
  reasonLength,
  fields,
  children,
  work,
  onClose,
}: {
  title: string;
  /** Text of the button that does it. */
  button: string;
  isDanger?: boolean;
  /** Whether the button may be pressed. */
  isReady?: boolean;
  reasonHint?: string;
  reasonLength?: number;
  /** Further fields for the operator. */
  fields?: ComponentChildren;
  /** The description of the effect. */
  children: ComponentChildren;
  /** Does it; undefined if something that was filled in is wrong. The dialog closes at the end. */
  work: (reason: string) => Promise<void> | undefined;
  onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const { run, isRunning, error } = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isRunning || !isReady) return;
    const working = work(reason.trim());
    if (working !== undefined) run(() => working.then(onClose));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <form onSubmit={submit}>
        {fields}
        <ReasonField hint={reasonHint} maxLength={reasonLength} value={reason} onValue={setReason} />
        <ActionError error={error} />
        <div class="actions">
          <button type="submit" class={isDanger ? 'danger' : undefined} disabled={isRunning || !isReady}>
            {button}
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
