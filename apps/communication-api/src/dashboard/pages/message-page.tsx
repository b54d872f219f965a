import type { ComponentChildren, JSX } from 'preact';
import { Lead } from '../../wizard/pages/parts.tsx';
import { CardLayout } from './layout.tsx';

interface MessagePageProps {
  readonly title: string;
  readonly detail: string;
  /** The next steps that the person can take. */
  readonly children?: ComponentChildren;
}

/** A page that describes an error. */
export const MessagePage = ({ title, detail, children }: MessagePageProps): JSX.Element => (
  <CardLayout title={title} faulty>
    <Lead title={title} sign="bad">
      <p>{detail}</p>
    </Lead>
    {children}
  </CardLayout>
);
