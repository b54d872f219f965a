import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { EffectiveLimit } from '../../limits/account-limits.ts';
import type { Here } from '../here.ts';
import { limitLabel } from '../limit-form.ts';
import { providerPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { WindowTexts } from './limit-panel.tsx';
import { Badge, Fact } from './parts.tsx';

interface LimitsPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly providers: readonly { readonly name: string; readonly limits: readonly EffectiveLimit[] }[];
}

/** The limits of every provider, in an application. */
export const LimitsPage = ({ here, application, providers }: LimitsPageProps): JSX.Element => (
  <ApplicationLayout here={here} application={application} title="Limits" part="limits">
    <h1>Limits</h1>
    <p class="soft">
      The limits of each account of a provider, unless the account has its own limit. The page of an account shows its
      limits.
    </p>
    {providers.length === 0 ? <p class="empty">No provider is installed whose accounts users could link.</p> : null}
    <ul class="rows">
      {providers.map(({ name, limits }) => (
        <li key={name}>
          <div class="what">
            <a class="title" href={providerPath(application.id, name)}>
              {name}
            </a>
            {limits.some(({ source }) => source !== 'recommended') ? <Badge label="Adjusted" tone="warn" /> : null}
          </div>
          <dl class="facts">
            {limits.map(({ route, windows }) => (
              <Fact key={route} name={limitLabel(route)}>
                <WindowTexts text={windows.join(', ')} />
              </Fact>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  </ApplicationLayout>
);
