import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import type { LimitChanged, LimitPreview, ShadowState } from '../api/answers.ts';
import { type ApiError, ask } from '../api/client.ts';
import { Affected, affectedText } from '../limits/affected.tsx';
import { Warnings } from '../limits/warnings.tsx';
import { ActionError } from '../parts/action-error.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice } from '../parts/field.tsx';
import { countText, windowsText } from '../parts/format.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { ReasonField } from '../parts/reason-field.tsx';
import { targetText } from '../parts/target.ts';
import { Wide } from '../parts/wide.tsx';
import { stopShadow } from './stop-dialog.tsx';

const AFTER = [
  ['end', 'ends'],
  ['go-on', 'goes on'],
] as const;

/** Puts the candidate's limits in force: the changes, and the button that applies them. */
export function PromoteDialog({
  state: { candidate, promotion },
  onRead,
  onDone,
  onClose,
}: {
  state: ShadowState;
  /** Something may have been written. */
  onRead: () => void;
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const { changes, left, obstacles } = promotion ?? NOTHING;
  const { preview, error: previewError } = usePreview(changes);
  const [reason, setReason] = useState('');
  const [isConfirmed, setConfirmed] = useState(false);
  const [after, setAfter] = useState<(typeof AFTER)[number][0]>('end');
  const { run, isRunning, error } = useAction();
  const mayEnd = candidate?.source === 'operator' && left === 0;
  const promote = async (): Promise<void> => {
    const body = { changes: bare(changes), reason: reason.trim(), confirm: isConfirmed };
    const query = { wait: 'applied' };
    const { applied } = await ask<LimitChanged>('POST', 'v1/limits/batch', { query, body }).finally(onRead);
    const obeyed = applied ? ` ${applied.instances} of ${applied.of} processes obey.` : '';
    const done = `${countText(changes.length, 'limit')} changed.${obeyed}`;
    onDone(`${done} ${mayEnd && after === 'end' ? await endText(body.reason) : 'The candidate goes on.'}`);
    onClose();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(promote);
  };
  return (
    <Dialog title="Promote the candidate" onClose={onClose}>
      {obstacles.length > 0 && (
        <Notice kind="care">
          <p>Not everything can be promoted:</p>
          {obstacles.map((obstacle) => (
            <p key={obstacle}>{obstacle}</p>
          ))}
        </Notice>
      )}
      {changes.length === 0 ? (
        <p>The limits of now are those of the candidate.</p>
      ) : (
        <>
          <ChangeTable changes={preview?.changes ?? []} />
          {left > 0 && (
            <p>
              {countText(left, 'more change', 'more changes')} are left. Promote these first, and then promote again.
            </p>
          )}
          <ErrorNotice error={previewError} />
          {preview && (
            <form onSubmit={submit}>
              <p>{affectedText(preview.accounts.affected, preview.now)}</p>
              <Warnings
                warnings={preview.changes.flatMap(({ warnings }) => warnings)}
                isConfirmed={isConfirmed}
                onConfirmed={setConfirmed}
              />
              {mayEnd && <Choice label="The candidate then" value={after} options={AFTER} onValue={setAfter} />}
              <ReasonField hint="The history shows it." value={reason} onValue={setReason} />
              <ActionError error={error} />
              {error?.status === 412 && <p>Close this window and open it again: it shows the limits of now.</p>}
              <div class="actions">
                <button type="submit" disabled={isRunning || error?.status === 412}>
                  Promote
                </button>
                <button type="button" class="quiet" onClick={onClose}>
                  Cancel
                </button>
              </div>
              <Affected now={preview.now} />
            </form>
          )}
        </>
      )}
    </Dialog>
  );
}

const NOTHING = { changes: [], left: 0, obstacles: [] } satisfies ShadowState['promotion'];

type Change = NonNullable<ShadowState['promotion']>['changes'][number];

/** As a batch takes them. */
function bare(changes: readonly Change[]) {
  return changes.map(({ before: _, ...change }) => change);
}

/** Asks once for the effect of the changes. */
function usePreview(changes: readonly Change[]) {
  const [answer, setAnswer] = useState<{ readonly preview?: LimitPreview; readonly error?: ApiError }>({});
  useEffect(() => {
    if (changes.length === 0) return;
    ask<LimitPreview>('POST', 'v1/limits/batch', { query: { dryRun: true }, body: { changes: bare(changes) } }).then(
      (preview) => setAnswer({ preview }),
      (error: unknown) => setAnswer({ error: error as ApiError }),
    );
  }, []);
  return answer;
}

/** The limits are changed by then: what goes wrong here must not look as if they were not. */
async function endText(reason: string): Promise<string> {
  try {
    await stopShadow(reason);
    return 'The candidate has ended.';
  } catch (error) {
    return `The candidate may go on: ${(error as ApiError).message}`;
  }
}

function ChangeTable({ changes }: Pick<LimitPreview, 'changes'>) {
  return (
    <Wide label="Changes" isTall={changes.length > 10}>
      <table>
        <thead>
          <tr>
            <th>Limit</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {changes.map(({ target, before, after }) => (
            <tr key={targetText(target)}>
              <td>{targetText(target)}</td>
              <td>{windowsText(before)}</td>
              <td>{windowsText(after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
