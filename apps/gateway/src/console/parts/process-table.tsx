import type { Instance } from '../api/answers.ts';
import { changeText, numberText, spanText, timeText } from './format.ts';
import { Wide } from './wide.tsx';

/** The processes with the same store, and the change of limits that each obeys. A dash: the process does not say it. */
export function ProcessTable({ instances }: { instances: readonly Instance[] }) {
  const here = instances.find(({ self }) => self)?.revision;
  return (
    <Wide label="Processes">
      <table>
        <thead>
          <tr>
            <th>Process</th>
            <th>State</th>
            <th>Limits</th>
            <th class="number">Decisions per second</th>
            <th>Breaker</th>
            <th>Version</th>
            <th>Started</th>
            <th class="number">Heard of</th>
          </tr>
        </thead>
        <tbody>
          {instances.map(({ name, self, state, revision, decisionsPerSecond, breaker, version, startedAt, ageMs }) => (
            <tr key={name}>
              <td>
                {name} {self && <span class="soft">this process</span>}
              </td>
              <td>{state === 'draining' ? <span class="badge care">draining</span> : (state ?? '–')}</td>
              <td>
                <ObeyedChange revision={revision} here={here} />
              </td>
              <td class="number">{typeof decisionsPerSecond === 'number' ? numberText(decisionsPerSecond) : '–'}</td>
              <td>{breaker === 'open' ? <span class="badge bad">open</span> : (breaker ?? '–')}</td>
              <td>{version ?? '–'}</td>
              <td>{startedAt ? timeText(startedAt) : '–'}</td>
              <td class="number">{spanText(ageMs)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

/**
 * Processes that obey the same change report the same revision. After a loss of the store, another change may get the
 * same number.
 */
function ObeyedChange({ revision, here }: { revision: string; here: string | undefined }) {
  const text = changeText(revision);
  if (here === undefined || revision === here) return <>{text}</>;
  return <span class="badge care">{text === changeText(here) ? `another ${text}` : text}</span>;
}
