import type { MetOrphan } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { timeText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import { Pager, usePages } from '../parts/pager.tsx';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';

const EVERY_MS = 5_000;
const PER_PAGE = 50;

interface OrphanList {
  readonly orphans: readonly MetOrphan[];
  readonly next: string | null;
}

/** The orphans that retries ran into: a client waits for each of them. */
export function MetOrphans() {
  const pages = usePages('orphans');
  const query = { limit: PER_PAGE, cursor: pages.cursor };
  const { value, error } = usePolled(JSON.stringify(query), EVERY_MS, (signal) =>
    ask<OrphanList>('GET', 'v1/claims/orphans', { query, signal }),
  );
  return (
    <section aria-labelledby="orphans">
      <h2 id="orphans">Orphans that retries met</h2>
      <p class="soft">At this gateway, the last one first. An operator may have completed or released one since.</p>
      <ErrorNotice error={error} />
      {value?.orphans.length === 0 && <p>No retry has met an orphan.</p>}
      {value !== undefined && value.orphans.length > 0 && (
        <Wide label="Orphans">
          <table>
            <thead>
              <tr>
                <th>Key</th>
                <th>Application</th>
                <th>Met last</th>
              </tr>
            </thead>
            <tbody>
              {value.orphans.map(({ application, key, at }) => (
                <tr key={JSON.stringify([application, key])}>
                  <td>
                    <a href={href('claims', undefined, { application, key })}>{key}</a>
                  </td>
                  <td>{application}</td>
                  <td>{timeText(at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      <Pager pages={pages} next={value?.next} />
    </section>
  );
}
