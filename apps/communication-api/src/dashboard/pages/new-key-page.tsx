import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { Here } from '../here.ts';
import { applicationPath } from '../paths.ts';
import { Layout } from './layout.tsx';
import { Day } from './parts.tsx';

interface NewKeyPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly newKey: {
    readonly name: string;
    readonly kind: 'service' | 'account';
    readonly token: string;
    readonly expiresAt: Date;
  };
}

/** The only page that shows the token of a key. */
export const NewKeyPage = ({ here, application, newKey }: NewKeyPageProps): JSX.Element => (
  <Layout here={here} title="New key" part="applications">
    <h1>New key</h1>
    <section class="panel">
      <p>
        The token of the {newKey.kind} key <strong>{newKey.name}</strong> of {application.name}. It is valid until{' '}
        <Day at={newKey.expiresAt} />.
      </p>
      <p class="secret">
        <code>{newKey.token}</code>
      </p>
      <p>
        <strong>Copy it now: it is never shown again.</strong> Send it in the header <code>X-API-KEY</code>.
      </p>
      <p>
        <a class="button" href={applicationPath(application.id)}>
          I have copied it
        </a>
      </p>
    </section>
  </Layout>
);
