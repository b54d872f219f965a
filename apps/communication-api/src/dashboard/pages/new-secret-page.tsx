import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { Endpoint } from '../../webhooks/endpoints.ts';
import type { Here } from '../here.ts';
import { endpointPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { Time } from './parts.tsx';

interface NewSecretPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly endpoint: Endpoint;
  readonly secret: string;
  /** After a rotation: until when the old secret signs as well. */
  readonly previousUntil?: Date | undefined;
}

/** The only page that shows the secret of an endpoint. */
export const NewSecretPage = (props: NewSecretPageProps): JSX.Element => {
  const { here, application, endpoint, secret, previousUntil } = props;
  return (
    <ApplicationLayout here={here} application={application} title="New signing secret" part="webhooks">
      <h1>New signing secret</h1>
      <section class="panel">
        <p>
          It signs what <span class="url">{endpoint.url}</span> receives.
          {previousUntil === undefined ? null : (
            <>
              {' '}
              Until <Time at={previousUntil} />, the old secret signs as well, so your receiver can change over at any
              time.
            </>
          )}
        </p>
        <p class="secret">
          <code>{secret}</code>
        </p>
        <p>
          <strong>Copy it now: it is never shown again.</strong> Your receiver verifies the header{' '}
          <code>webhook-signature</code> with it, by any library for Standard Webhooks.
        </p>
        <p>
          <a class="button" href={endpointPath(application.id, endpoint.id)}>
            I have copied it
          </a>
        </p>
      </section>
    </ApplicationLayout>
  );
};
