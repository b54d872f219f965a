import type { ComponentChildren, JSX } from 'preact';
import { type Frame, Layout } from './layout.tsx';
import { Lead } from './parts.tsx';

interface MessagePageProps {
  readonly frame: Frame;
  readonly title: string;
  readonly detail: string;
  readonly good?: boolean | undefined;
  /** What the user can do. */
  readonly children?: ComponentChildren;
  readonly aside?: ComponentChildren;
}

/** A page that says one thing. */
export const MessagePage = ({ frame, title, detail, good, children, aside }: MessagePageProps): JSX.Element => (
  <Layout frame={frame} title={title} faulty={good !== true} aside={aside}>
    <Lead title={title} sign={good === true ? 'good' : 'bad'}>
      <p>{detail}</p>
    </Lead>
    {children}
  </Layout>
);
