import { Dialog } from '../parts/dialog.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import { type Target, targetText } from '../parts/target.ts';
import type { Beginning, Preset } from './draft.ts';
import { LimitEditor } from './limit-editor.tsx';
import { useLimit } from './use-limit.ts';

/** A limit that an operator changes. */
export interface OpenedLimit {
  readonly target: Target;
  readonly beginning: Beginning;
  readonly presets?: readonly Preset[] | undefined;
}

/** A window in which an operator changes one limit, also one that is not set yet. */
export function LimitDialog({
  target,
  beginning,
  presets = [],
  onClose,
  onChanged,
}: OpenedLimit & {
  onClose: () => void;
  /** Something may have been written. */
  onChanged: () => void;
}) {
  const { limit, error } = useLimit(target);
  return (
    <Dialog title={`Limit: ${targetText(target)}`} onClose={onClose}>
      <ErrorNotice error={error} />
      {limit && (
        <LimitEditor
          target={target}
          limit={limit}
          beginning={beginning}
          presets={presets}
          onChanged={onChanged}
          onClose={onClose}
        />
      )}
    </Dialog>
  );
}
