import type { JSX } from 'preact';
import type { AuditEntry } from '../../people/audit-log.ts';
import type { Here } from '../here.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath } from '../paths.ts';
import { Layout } from './layout.tsx';
import { Older, Time } from './parts.tsx';

/** The audit log, the newest entry first. */
export const AuditPage = ({ here, entries }: { here: Here; entries: Listed<AuditEntry> }): JSX.Element => (
  <Layout here={here} title="Audit log" part="audit">
    <h1>Audit log</h1>
    <p class="soft">What people have done in the dashboard. Entries are kept for 400 days.</p>
    <ol class="rows log">
      {entries.rows.map(({ id, actor, action, subject, application_id, at }) => (
        <li key={id}>
          <p>
            <strong>{actor}</strong> {action}: {subject}
          </p>
          <p class="soft">
            <Time at={at} />
            {application_id === null ? null : (
              <>
                {' in '}
                <a href={applicationPath(application_id)}>{application_id}</a>
              </>
            )}
          </p>
        </li>
      ))}
    </ol>
    <Older href={entries.next} label="Older entries" />
  </Layout>
);
