import type { ComponentChildren, JSX } from 'preact';

/** A time, to the minute or to the second. */
export const Time = ({ at, to = 'minute' }: { readonly at: Date; readonly to?: 'minute' | 'second' }): JSX.Element => {
  const iso = at.toISOString();
  return <time dateTime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, to === 'minute' ? 16 : 19)} UTC`}</time>;
};

/** The meaning of a colour. The text says it, too. */
export type Tone = 'good' | 'warn' | 'bad' | 'quiet';

export const Badge = ({ label, tone }: { readonly label: string; readonly tone: Tone }): JSX.Element => (
  <span class={`badge ${tone}`}>{label}</span>
);

/** The meaning of a state, and the next step. */
export const Note = ({
  tone,
  children,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}): JSX.Element => <div class={`note ${tone}`}>{children}</div>;

/** One entry of a `dl` of the class `facts`. */
export const Fact = ({
  name,
  isLong = false,
  children,
}: {
  readonly name: string;
  /** Whether it needs a separate line. */
  readonly isLong?: boolean;
  readonly children: ComponentChildren;
}): JSX.Element => (
  <div class={isLong ? 'long' : undefined}>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

export const Day = ({ at }: { readonly at: Date }): JSX.Element => (
  <time dateTime={at.toISOString()}>{at.toISOString().slice(0, 10)}</time>
);

/** A message after something was done. */
export const Done = ({ text }: { readonly text: string | undefined }): JSX.Element | null =>
  text === undefined ? null : (
    <p class="done" role="status">
      {text}
    </p>
  );

export const EnvironmentBadge = ({ environment }: { readonly environment: string }): JSX.Element => (
  <span class={`badge ${environment}`}>{environment === 'production' ? 'Production' : 'Development'}</span>
);

/** Characters that control a terminal, or that show text in another order than it is read. */
const UNSEEN = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Text of others, without characters that are not seen. */
export const seen = (text: string): string => text.replace(UNSEEN, '\ufffd');

/** Text of others, as it is. */
export const Text = ({ text }: { readonly text: string }): JSX.Element => (
  <pre dir="ltr">
    <code>{seen(text)}</code>
  </pre>
);

/** A link to the rest of a list. */
export const Older = ({
  href,
  label,
}: {
  readonly href: string | undefined;
  readonly label: string;
}): JSX.Element | null =>
  href === undefined ? null : (
    <p>
      <a href={href}>{label}</a>
    </p>
  );

interface RowProps {
  readonly title: string;
  /** Of the page of the entry. */
  readonly href: string;
  readonly badge: ComponentChildren;
  readonly children: ComponentChildren;
}

/** An entry of a list, which leads to its page. */
export const Row = ({ title, href, badge, children }: RowProps): JSX.Element => (
  <li>
    <div class="what">
      <a class="title" href={href}>
        {title}
      </a>
      {badge}
    </div>
    {children}
  </li>
);
