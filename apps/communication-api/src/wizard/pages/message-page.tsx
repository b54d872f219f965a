import type { ComponentChildren, JSX } from 'preact';
import { type Frame, Layout } from './layout.tsx';
import { Lead } from './parts.tsx';

const SIGNS = { good: 'good', neutral: 'none', error: 'bad' } as const;

interface MessagePageProps {
  readonly frame: Frame;
  readonly title: string;
  readonly detail: string;
  /** An error is announced in the title. Default: `error`. */
  readonly tone?: 'good' | 'neutral' | 'error' | undefined;
  /** The next steps that the user can take. */
  readonly children?: ComponentChildren;
  readonly aside?: ComponentChildren;
}

/** A page that says one thing. */
export const MessagePage = ({
  frame,
  title,
  detail,
  tone = 'error',
  children,
  aside,
}: MessagePageProps): JSX.Element => (
  <Layout frame={frame} title={title} faulty={tone === 'error'} aside={aside}>
    <Lead title={title} sign={SIGNS[tone]}>
      <p>{detail}</p>
    </Lead>
    {children}
  </Layout>
);
