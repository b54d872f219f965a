import type { GroupLimit } from '../api/answers.ts';
import { Wide } from '../parts/wide.tsx';
import { inFlightText, ownText } from './current-limit.tsx';

/** The limits of groups. One id of a group is changed on the page of its account. */
export function GroupTable({ limits }: { limits: readonly GroupLimit[] }) {
  return (
    <section aria-labelledby="group-limits">
      <h2 id="group-limits">Groups</h2>
      <Wide label="Limits of groups">
        <table>
          <thead>
            <tr>
              <th>Group</th>
              <th>Route</th>
              <th>Config</th>
              <th>In flight</th>
            </tr>
          </thead>
          <tbody>
            {limits.map(({ group, route, windows, inFlight }) => (
              <tr key={`${group} ${route}`}>
                <td>{group}</td>
                <td>{route ?? 'all methods'}</td>
                <td>{ownText(windows)}</td>
                <td>{inFlightText(inFlight)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}
