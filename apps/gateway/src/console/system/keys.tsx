import type { Key } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { timeText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import { Pager, usePages } from '../parts/pager.tsx';
import { Wide } from '../parts/wide.tsx';

const EVERY_MS = 30_000;

/** The keys of the config, without their secrets. */
export function Keys() {
  const pages = usePages('keys');
  const { cursor } = pages;
  const { value, error } = usePolled(`keys ${cursor}`, EVERY_MS, (signal) =>
    ask<{ keys: Key[]; next: string | null }>('GET', 'v1/keys', { query: { cursor }, signal }),
  );
  return (
    <section class="card" aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <ErrorNotice error={error} />
      {value?.keys.length === 0 && <p class="soft">The config has no keys.</p>}
      {value && value.keys.length > 0 && (
        <Wide label="Keys">
          <table>
            <thead>
              <tr>
                <th>SHA-256 begins</th>
                <th>Application</th>
                <th>Account</th>
                <th>Plan</th>
                <th>Lane</th>
                <th>Role</th>
                <th>Scope</th>
                <th>Expires</th>
              </tr>
            </thead>
            <tbody>
              {value.keys.map(({ name, sha256, application, plan, lane, role, scope, expiresAt }) => (
                <tr key={`${sha256} ${application}`}>
                  <td>
                    <code>{sha256}</code>
                  </td>
                  <td>{application}</td>
                  <td>key:{name}</td>
                  <td>{plan ?? '–'}</td>
                  <td>{lane ?? '–'}</td>
                  <td>{role}</td>
                  <td>{scope ?? '–'}</td>
                  <td>
                    {expiresAt === null ? 'never' : timeText(expiresAt)}{' '}
                    {expiresAt !== null && Date.parse(expiresAt) <= Date.now() && (
                      <span class="badge bad">expired</span>
                    )}
                  </td>
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
