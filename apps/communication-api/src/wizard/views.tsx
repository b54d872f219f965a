import type { JSX } from 'preact';
import type { Account } from '../accounts/accounts.ts';
import { type SyncNow, syncAt } from '../domain/initial-sync.ts';
import type { Csrf } from './csrf.ts';
import { ChoosePage } from './pages/choose-page.tsx';
import { MessagePage } from './pages/message-page.tsx';
import { PostForm, QuietForm, SubmitButton } from './pages/parts.tsx';
import { StepPage } from './pages/step-page.tsx';
import { SyncPage, type SyncView, syncViewOf } from './pages/sync-page.tsx';
import { linkPath } from './paths.ts';
import type { SessionVisit, Visit } from './visit.ts';
import type { CurrentStep, WizardFlow } from './wizard-flow.ts';

/** Makes the pages of a visit. */
export class Views {
  constructor(
    private readonly csrf: Csrf,
    private readonly flow: WizardFlow,
  ) {}

  choose(visit: SessionVisit, search: string): JSX.Element {
    return (
      <ChoosePage
        frame={visit.frame}
        application={visit.application.name}
        {...this.#form(visit, 'choose')}
        providers={visit.providers}
        search={search}
        faults={visit.session.data.faults ?? []}
        aside={this.#aside(visit)}
      />
    );
  }

  step(visit: SessionVisit, { provider, step }: CurrentStep, nowMs: number, isStale: boolean): JSX.Element {
    const { row, data } = visit.session;
    const questions = this.flow.questionsOf(visit, provider, data);
    const pauseMs = (row.paused_until?.getTime() ?? 0) - nowMs;
    return (
      <StepPage
        frame={visit.frame}
        {...this.#form(visit, `step/${step.name}`)}
        step={step}
        values={data.values}
        faults={[...(data.faults ?? []), ...(isStale ? [{ message: 'stale' as const }] : [])]}
        pausedSeconds={pauseMs > 0 ? Math.ceil(pauseMs / 1_000) : undefined}
        withProxy={questions.proxy}
        hasProxyPassword={data.proxy?.password !== undefined}
        withCountry={questions.country}
        aside={this.#aside(visit)}
      />
    );
  }

  wrongAccount(visit: SessionVisit, expected: string): JSX.Element {
    const { text } = visit.frame;
    return (
      <MessagePage
        frame={visit.frame}
        title={text.wrongAccount.title}
        detail={text.wrongAccount.detail(expected, visit.session.data.otherAccount ?? '')}
        aside={this.#cancel(visit)}
      >
        {this.#retry(visit, text.wrongAccount.retry)}
      </MessagePage>
    );
  }

  unreachable(visit: SessionVisit): JSX.Element {
    const { title, detail, retry } = visit.frame.text.unreachable;
    return (
      <MessagePage frame={visit.frame} title={title} detail={detail} aside={this.#cancel(visit)}>
        {this.#retry(visit, retry)}
      </MessagePage>
    );
  }

  sync(visit: Visit, account: Account, nowMs: number, returnUrl: string): JSX.Element {
    return (
      <SyncPage
        frame={visit.frame}
        application={visit.application.name}
        account={account.name}
        sync={this.syncView(visit, syncAt(account.sync, nowMs), nowMs)}
        progressPath={linkPath(visit.token, 'progress')}
        path={linkPath(visit.token, 'sync')}
        returnUrl={returnUrl}
      />
    );
  }

  syncView({ frame }: Visit, sync: SyncNow, nowMs: number): SyncView {
    return syncViewOf(sync, frame, nowMs);
  }

  linked({ frame, application }: Visit, returnUrl: string): JSX.Element {
    const { linked } = frame.text;
    return (
      <MessagePage frame={frame} title={linked.title} detail={linked.detail(application.name)} tone="good">
        <ReturnLink visit={{ frame, application }} url={returnUrl} />
      </MessagePage>
    );
  }

  cancelled({ frame, application }: Visit, returnUrl: string): JSX.Element {
    const { cancelled } = frame.text;
    return (
      <MessagePage frame={frame} title={cancelled.title} detail={cancelled.detail(application.name)} tone="neutral">
        <ReturnLink visit={{ frame, application }} url={returnUrl} />
      </MessagePage>
    );
  }

  cookies({ frame, token }: Visit): JSX.Element {
    const { title, detail, retry } = frame.text.cookies;
    return (
      <MessagePage frame={frame} title={title} detail={detail}>
        <a class="button" href={linkPath(token)}>
          {retry}
        </a>
      </MessagePage>
    );
  }

  #form(visit: SessionVisit, form: string): { readonly action: string; readonly csrf: string } {
    return { action: linkPath(visit.token, form), csrf: this.csrf.tokenOf(visit.session.row.id, form) };
  }

  /** The ways out of a page: back to its beginning, and back to the application. */
  #aside(visit: SessionVisit): JSX.Element {
    const { text } = visit.frame;
    const { row, data } = visit.session;
    const isFirst = row.step === 'choose';
    const beginning = visit.providers.length > 1 ? text.back : (data.pagesDone ?? 0) > 0 ? text.restart : undefined;
    const label = isFirst ? undefined : beginning;
    return (
      <>
        {label === undefined ? null : <QuietForm {...this.#form(visit, 'back')} label={label} />}
        {this.#cancel(visit)}
      </>
    );
  }

  #cancel(visit: SessionVisit): JSX.Element {
    return <QuietForm {...this.#form(visit, 'cancel')} label={visit.frame.text.cancel(visit.application.name)} />;
  }

  /** The way back to the beginning, on a page that offers nothing else. */
  #retry(visit: SessionVisit, label: string): JSX.Element {
    return (
      <PostForm {...this.#form(visit, 'back')}>
        <SubmitButton frame={visit.frame} label={label} />
      </PostForm>
    );
  }
}

const ReturnLink = ({ visit, url }: { visit: Pick<Visit, 'frame' | 'application'>; url: string }): JSX.Element => (
  <a class="button" href={url}>
    {visit.frame.text.returnTo(visit.application.name)}
  </a>
);
