import { useState } from 'preact/hooks';
import type { Limit, LimitChanged, LimitPreview } from '../api/answers.ts';
import { ApiError, ask } from '../api/client.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import type { Target } from '../parts/target.ts';
import { Applied } from './applied.tsx';
import { Conflict } from './conflict.tsx';
import { CurrentLimit } from './current-limit.tsx';
import {
  type Beginning,
  type Draft,
  draftOf,
  effectOf,
  faultsOf,
  type Preset,
  requestFor,
  withPreset,
} from './draft.ts';
import { DraftForm } from './draft-form.tsx';
import { Presets } from './presets.tsx';
import { Preview } from './preview.tsx';
import { Unsure } from './unsure.tsx';

interface Failure {
  readonly step: 'preview' | 'change';
  readonly error: ApiError;
}

/** Changes a limit in two steps: a preview, and only then the change. */
export function LimitEditor({
  target,
  limit: found,
  beginning,
  presets,
  onChanged,
  onClose,
}: {
  target: Target;
  limit: Limit;
  beginning: Beginning;
  presets: readonly Preset[];
  onChanged: () => void;
  onClose: () => void;
}) {
  const [limit, setLimit] = useState(found);
  const [draft, setDraft] = useState(() => draftOf(found, beginning));
  const [preview, setPreview] = useState<{
    readonly of: string;
    readonly round: number;
    readonly answer: LimitPreview;
  }>();
  const [done, setDone] = useState<Limit & LimitChanged>();
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);

  const attempt = async (step: Failure['step'], work: () => Promise<void>): Promise<void> => {
    // A second press of the button must not change the limit twice.
    if (isBusy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await work();
    } catch (reason) {
      setFailure({ step, error: reason instanceof ApiError ? reason : new ApiError(0, String(reason)) });
    }
    setBusy(false);
  };
  const look = (wanted: Draft) =>
    attempt('preview', async () => {
      setDraft(wanted);
      const [method, asked] = requestFor(target, wanted, { dryRun: true });
      const answer = await ask<LimitPreview>(method, 'v1/limit', asked);
      setPreview({ of: effectOf(wanted), round: (preview?.round ?? 0) + 1, answer });
    });
  const apply = (confirm: boolean) =>
    attempt('change', async () => {
      const [method, asked] = requestFor(target, draft, { wait: 'applied', confirm });
      const ifMatch = `"${limit.adjusted?.version ?? 0}"`;
      try {
        setDone(await ask<Limit & LimitChanged>(method, 'v1/limit', { ...asked, ifMatch }));
      } finally {
        onChanged();
      }
    });

  if (done !== undefined) return <Applied target={target} limit={done} onClose={onClose} />;
  const faults = faultsOf(failure?.error);
  const isConflict = failure?.error.status === 412;
  const isUnsure = failure?.step === 'change' && (failure.error.status === 0 || failure.error.status >= 500);
  const mayApply = preview?.of === effectOf(draft) && failure?.step !== 'preview' && !isConflict && !isUnsure;
  return (
    <>
      <CurrentLimit limit={limit} />
      <Presets presets={presets} limit={limit} onPreset={(preset) => void look(withPreset(draft, preset, limit))} />
      <DraftForm
        draft={draft}
        limit={limit}
        faults={faults.ofWindow}
        isBusy={isBusy}
        onDraft={setDraft}
        onSubmit={() => void look(draft)}
      />
      {isConflict ? (
        <Conflict
          target={target}
          error={failure.error}
          onLook={(now) => {
            setLimit(now);
            setPreview(undefined);
            setFailure(undefined);
          }}
        />
      ) : isUnsure ? (
        <Unsure target={target} seen={limit} error={failure.error} />
      ) : faults.areAll ? (
        <Notice kind="bad">The gateway does not accept these windows. Nothing was changed.</Notice>
      ) : (
        <ErrorNotice error={failure?.error} />
      )}
      {preview && mayApply && (
        <Preview
          key={preview.round}
          preview={preview.answer}
          draft={draft}
          limit={limit}
          isBusy={isBusy}
          onDraft={setDraft}
          onApply={(confirm) => void apply(confirm)}
        />
      )}
    </>
  );
}
