import type { ComponentChildren, JSX } from 'preact';
import type { EnteredFault } from '../../links/wizard-sessions.ts';
import type { Frame } from './layout.tsx';

/** The name of the form field with the token that proves that the service made the form. */
export const CSRF_FIELD = '_csrf';

interface PostFormProps {
  readonly action: string;
  readonly csrf: string;
  /** Seconds after which a page with script submits the form by itself. */
  readonly repeatSeconds?: number | undefined;
  readonly children: ComponentChildren;
}

/** A form that is sent to the service. The service checks it, since its messages are in the page's language. */
export const PostForm = ({ action, csrf, repeatSeconds, children }: PostFormProps): JSX.Element => (
  <form method="post" action={action} noValidate data-repeat={repeatSeconds}>
    <input type="hidden" name={CSRF_FIELD} value={csrf} />
    {children}
  </form>
);

/** A form that is only a button. */
export const QuietForm = ({ label, ...form }: Omit<PostFormProps, 'children'> & { label: string }): JSX.Element => (
  <PostForm {...form}>
    <button class="quiet" type="submit">
      {label}
    </button>
  </PostForm>
);

export const SubmitButton = ({ frame: { text }, label }: { frame: Frame; label?: string }): JSX.Element => (
  <button type="submit" data-sending={text.sending}>
    {label ?? text.submit}
  </button>
);

const SIGNS = {
  good: 'M4 13l5 5L20 7',
  bad: 'M12 5v9M12 18.5v.5',
  work: 'M12 4a8 8 0 1 0 8 8',
  none: 'M6 12h12',
};

interface LeadProps {
  readonly title: string;
  readonly sign?: keyof typeof SIGNS;
  readonly children?: ComponentChildren;
}

/** The heading of a card, with the subject of the page. */
export const Lead = ({ title, sign, children }: LeadProps): JSX.Element => (
  <div class="lead">
    {sign === undefined ? null : (
      <svg class={sign === 'bad' ? 'mark bad' : 'mark'} viewBox="0 0 24 24" aria-hidden="true">
        <path
          d={SIGNS[sign]}
          fill="none"
          stroke="currentColor"
          stroke-width="2.5"
          stroke-linecap="round"
          stroke-linejoin="round"
        />
      </svg>
    )}
    <h1>{title}</h1>
    {children}
  </div>
);

export const inputId = (name: string): string => `field-${name}`;

export function messageOf({ message }: EnteredFault, { text, language }: Frame): string {
  return typeof message === 'string' ? text.faults[message] : message[language];
}

interface FaultSummaryProps {
  readonly frame: Frame;
  readonly faults: readonly EnteredFault[];
  /** Seconds until the end of a pause after too many attempts. */
  readonly pausedSeconds?: number | undefined;
  /** The page's name for an input. */
  readonly labelOf?: (field: string) => string | undefined;
}

/** All faults of a page. It takes the focus, so that a screen reader begins with it. */
export function FaultSummary({ frame, faults, pausedSeconds, labelOf }: FaultSummaryProps): JSX.Element | null {
  if (faults.length === 0 && pausedSeconds === undefined) return null;
  const { text } = frame;
  return (
    // biome-ignore lint/a11y/noAutofocus: the page was loaded because of these faults, and they are what to read first.
    <div class="summary" role="alert" tabIndex={-1} autoFocus>
      <h2>{faults.some(({ field }) => field !== undefined) ? text.faults.summary : text.faults.general}</h2>
      <ul>
        {pausedSeconds === undefined ? null : <li>{text.faults.paused(pausedSeconds)}</li>}
        {faults.map((fault) => (
          <li key={fault.field}>
            {fault.field === undefined ? (
              messageOf(fault, frame)
            ) : (
              <a href={`#${inputId(fault.field)}`}>
                {[labelOf?.(fault.field), messageOf(fault, frame)].filter((part) => part !== undefined).join(': ')}
              </a>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
