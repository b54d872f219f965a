import { Dialog } from '../parts/dialog.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import { type Target, targetText } from '../parts/target.ts';
import type { Beginning } from './draft.ts';
import { LimitEditor } from './limit-editor.tsx';
import { useLimit } from './use-limit.ts';

/** A window in which an operator changes one limit, also one that is not set yet. */
export function LimitDialog({
  target,
  beginning,
  onClose,
  onChanged,
}: {
  target: Target;
  beginning: Beginning;
  onClose: () => void;
  /** Something may have been written. */
  onChanged: () => void;
}) {
  const { limit, error } = useLimit(target);
  return (
    <Dialog title={`Limit: ${targetText(target)}`} onClose={onClose}>
      <ErrorNotice error={error} />
      {limit && (
        <LimitEditor target={target} limit={limit} beginning={beginning} onChanged={onChanged} onClose={onClose} />
      )}
    </Dialog>
  );
}
