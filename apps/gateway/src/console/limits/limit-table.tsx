import type { Limit } from '../api/answers.ts';
import { timeText, windowsText } from '../parts/format.ts';
import { type Target, targetText } from '../parts/target.ts';
import { TargetName } from '../parts/target-name.tsx';
import { Wide } from '../parts/wide.tsx';
import { may } from '../session.ts';
import { inFlightText, ownText } from './current-limit.tsx';
import type { Beginning } from './draft.ts';

/** Limits of the layers, and for operators the buttons that change them. */
export function LimitTable({
  limits,
  onOpen,
}: {
  limits: readonly Limit[];
  onOpen: (target: Target, beginning: Beginning) => void;
}) {
  const isOperator = may('operator');
  return (
    <Wide label="Limits">
      <table>
        <thead>
          <tr>
            <th>Layer</th>
            <th>Route</th>
            <th>Config</th>
            <th>Adjusted</th>
            <th>Effective</th>
            <th>In flight</th>
            <th>By, reason</th>
            <th>Ends</th>
            {isOperator && <th>Actions</th>}
          </tr>
        </thead>
        <tbody>
          {limits.map(({ target, base, adjusted, effective, inFlight }) => {
            const name = targetText(target);
            return (
              <tr key={name}>
                <td>
                  <TargetName target={target} isLayer />
                </td>
                <td>{target.route ?? 'all methods'}</td>
                <td>{ownText(base)}</td>
                <td>{adjusted && windowsText(adjusted.windows)}</td>
                <td>{ownText(effective)}</td>
                <td>{inFlightText(inFlight)}</td>
                <td>
                  {adjusted?.by} <span class="soft">{adjusted?.reason}</span>
                </td>
                <td>{adjusted && (adjusted.until === null ? 'never' : timeText(adjusted.until))}</td>
                {isOperator && (
                  <td>
                    <div class="actions">
                      <button
                        type="button"
                        class="quiet"
                        aria-label={`Change ${name}`}
                        onClick={() => onOpen(target, 'now')}
                      >
                        Change
                      </button>
                      {adjusted && (
                        <button
                          type="button"
                          class="quiet"
                          aria-label={`Reset ${name}`}
                          onClick={() => onOpen(target, 'reset')}
                        >
                          Reset
                        </button>
                      )}
                    </div>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </Wide>
  );
}
