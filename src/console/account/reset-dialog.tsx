import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import { ask } from '../api/client.ts';
import { ActionError } from '../parts/action-error.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { countText } from '../parts/format.ts';
import type { RouteWindows } from '../parts/verdict.ts';

/** Resets the counters of an account, or of one route of it. */
export function ResetDialog({
  account,
  routes,
  route,
  onDone,
  onClose,
}: {
  account: string;
  /** Those whose counters are deleted. */
  routes: readonly RouteWindows[];
  /** The only one; undefined: all of them. */
  route: string | undefined;
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const { run, isRunning, error } = useAction();
  const of = route === undefined ? account : `${account} on ${route}`;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(async () => {
      await ask('POST', 'v1/windows/reset', { body: { account, ...(route !== undefined && { route }), reason } });
      onDone(`The counters of ${of} are reset.`);
      onClose();
    });
  };
  const windows = routes.flatMap((each) => each.windows);
  const full = windows.filter(({ remaining }) => remaining <= 0).length;
  return (
    <Dialog title={`Reset the counters of ${of}?`} onClose={onClose}>
      <p>
        This empties {countText(windows.length, 'window')} on {countText(routes.length, 'route')}, {full} of them full.
        The account gets its whole allowance again at once: what it has already sent is forgotten. A block stays.
        {route !== undefined && ' So does a count that several routes share: reset all counters to empty it.'}
      </p>
      <form onSubmit={submit}>
        <Field label="Reason" autocomplete="off" hint="The log has it." value={reason} onValue={setReason} />
        <ActionError error={error} />
        <div class="actions">
          <button type="submit" class="danger" disabled={isRunning}>
            Reset counters
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
