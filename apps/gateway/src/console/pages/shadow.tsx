import { useState } from 'preact/hooks';
import type { ShadowState } from '../api/answers.ts';
import { askFleet } from '../api/fleet.ts';
import { usePolled } from '../api/polled.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { may } from '../session.ts';
import { CandidateCard } from '../shadow/candidate-card.tsx';
import { ShadowFigures } from '../shadow/figures.tsx';
import { PromoteDialog } from '../shadow/promote-dialog.tsx';
import { StartDialog } from '../shadow/start-dialog.tsx';
import { StopDialog } from '../shadow/stop-dialog.tsx';

const EVERY_MS = 3_000;

/** A candidate for other limits: its effect on requests, and the operator's actions on it. */
export function ShadowPage() {
  const { value, error, refresh } = usePolled('shadow', EVERY_MS, (signal) =>
    askFleet<ShadowState>('v1/shadow', {}, signal),
  );
  /** The dialog's subject stays as it was when the dialog was opened. */
  const [open, setOpen] = useState<{ readonly what: 'start' | 'stop' | 'promote'; readonly of: ShadowState }>();
  const [done, setDone] = useState('');
  if (value === undefined) {
    return (
      <>
        <PageTitle title="Shadow" />
        <ErrorNotice error={error} />
      </>
    );
  }
  const isOperator = may('operator');
  const show = (what: 'start' | 'stop' | 'promote'): void => setOpen({ what, of: value });
  const dialog = {
    onDone: (text: string): void => {
      setDone(text);
      refresh();
    },
    onClose: () => setOpen(undefined),
  };
  const { candidate, figures } = value;
  return (
    <>
      <PageTitle title="Shadow">
        {isOperator && (
          <div class="actions">
            <button type="button" class={candidate === null ? undefined : 'quiet'} onClick={() => show('start')}>
              {candidate === null ? 'Start…' : 'Try other limits…'}
            </button>
            {candidate?.source === 'operator' && (
              <button type="button" class="danger" onClick={() => show('stop')}>
                Stop…
              </button>
            )}
            {candidate && (
              <button type="button" onClick={() => show('promote')}>
                Promote…
              </button>
            )}
          </div>
        )}
      </PageTitle>
      <p class="soft">
        A candidate decides about requests beside the limits, on counters of its own. It changes no answer.
      </p>
      <ErrorNotice error={error} />
      {done !== '' && <Notice kind="good">{done}</Notice>}
      {candidate === null ? <p>No candidate runs.</p> : <CandidateCard candidate={candidate} durable={value.durable} />}
      {figures && <ShadowFigures figures={figures} fleet={value.fleet ?? undefined} />}
      {open?.what === 'start' && <StartDialog candidate={open.of.candidate} {...dialog} />}
      {open?.what === 'stop' && <StopDialog figures={open.of.figures} {...dialog} />}
      {open?.what === 'promote' && <PromoteDialog state={open.of} onRead={refresh} {...dialog} />}
    </>
  );
}
