import type { JSX } from 'preact';
import type { SyncNow } from '../../domain/initial-sync.ts';
import { type Frame, Layout } from './layout.tsx';
import { Lead } from './parts.tsx';

/** How long the user waits before the page offers to leave. */
const LEAVE_AFTER_MS = 30_000;
/** How often a browser without script loads the page again. */
const REFRESH_SECONDS = 2;

/** The state of a sync that the page shows, and that its script requests. */
export interface SyncView {
  readonly status: SyncNow['status'];
  readonly progress: number;
  readonly text: string;
  readonly may_leave: boolean;
}

export function syncViewOf(sync: SyncNow, { language, text }: Frame, nowMs: number): SyncView {
  const percent = new Intl.NumberFormat(language, { style: 'percent' });
  return {
    status: sync.status,
    progress: sync.progress,
    text:
      sync.status === 'completed' ? text.sync.done : text.sync.percent(percent.format(Math.min(0.99, sync.progress))),
    may_leave: nowMs - Date.parse(sync.started_at) >= LEAVE_AFTER_MS,
  };
}

interface SyncPageProps {
  readonly frame: Frame;
  readonly application: string;
  readonly account: string;
  readonly sync: SyncView;
  /** The address from which the script reads the progress. */
  readonly progressPath: string;
  /** This page, which leads on when the sync is completed. */
  readonly path: string;
  /** The address of the application to which the user returns. */
  readonly returnUrl: string;
}

/** The initial sync, while the user waits for it. */
export function SyncPage(props: SyncPageProps): JSX.Element {
  const { frame, application, account, sync, progressPath, path, returnUrl } = props;
  const { text } = frame;
  return (
    <Layout frame={frame} title={text.sync.title} refreshSeconds={REFRESH_SECONDS}>
      <Lead title={text.sync.title} sign="work">
        <p>{text.sync.intro(account)}</p>
      </Lead>
      <div id="sync" class="progress" data-progress={progressPath} data-next={path}>
        <progress aria-label={text.sync.progress} value={sync.progress} max={1} />
        <p id="percent" class="hint percent" aria-live="polite">
          {sync.text}
        </p>
      </div>
      <div id="leave" class="lead" hidden={!sync.may_leave}>
        <p>{text.sync.leave}</p>
        <a class="button" href={returnUrl}>
          {text.returnTo(application)}
        </a>
      </div>
    </Layout>
  );
}
