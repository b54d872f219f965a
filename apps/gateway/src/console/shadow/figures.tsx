import type { ShadowState } from '../api/answers.ts';
import { status } from '../api/status.ts';
import { countText, limitName, numberText, processesText, timeText } from '../parts/format.ts';
import { Notice } from '../parts/notice.tsx';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';

type Figures = NonNullable<ShadowState['figures']>;
type Counts = Figures['total'];

/** The candidate's would-be decisions on requests. */
export function ShadowFigures({ figures, fleet }: { figures: Figures; fleet: ShadowState['fleet'] | undefined }) {
  const { total, routes, accounts, unlisted, since, counters } = figures;
  const all = fleet?.total ?? total;
  const here = `this gateway: ${status.value?.instance}`;
  return (
    <>
      <section class="card" aria-labelledby="matrix">
        <h2 id="matrix">Requests</h2>
        <p class="soft">
          {fleet ? `Sum of the processes that run it: ${processesText(fleet.processes)}.` : `Only ${here}.`}
          {counters === 'process' &&
            fleet?.processes.of !== 1 &&
            ' Each process counts for itself, so the candidate rejects less than it would.'}
        </p>
        <Matrix counts={all} />
        {all.dropped + all.failed > 0 && (
          <Notice kind="care">
            {countText(all.dropped + all.failed, 'request')} could not be checked: {numberText(all.dropped)} while too
            many checks were under way, {numberText(all.failed)} without an answer of the store in time.
          </Notice>
        )}
      </section>
      <section class="card" aria-labelledby="by-route">
        <h2 id="by-route">By route</h2>
        <p class="soft">
          Only {here}, since {timeText(since)}.
        </p>
        {routes.length === 0 ? <p>No request was checked yet.</p> : <RouteTable routes={routes} />}
      </section>
      <section class="card" aria-labelledby="newly-rejected">
        <h2 id="newly-rejected">Accounts that only the candidate rejects</h2>
        <p class="soft">
          Only {here}, since {timeText(since)}. Other processes may reject others.
        </p>
        {accounts.length === 0 ? <p>None.</p> : <AccountTable accounts={accounts} />}
        {unlisted > 0 && <p>{countText(unlisted, 'such request')} of further accounts.</p>}
      </section>
    </>
  );
}

function Matrix({ counts: { none, both, onlyCandidate, onlyCurrent } }: { counts: Counts }) {
  const sum = none + both + onlyCandidate + onlyCurrent;
  const cell = (count: number) => (
    <td class="number">
      {numberText(count)} {sum > 0 && <span class="soft">{shareText(count / sum)}</span>}
    </td>
  );
  return (
    <Wide label="Requests">
      <table>
        <thead>
          <tr>
            <th>The limits of now</th>
            <th class="number">The candidate accepts</th>
            <th class="number">The candidate rejects</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">accept</th>
            {cell(none)}
            {cell(onlyCandidate)}
          </tr>
          <tr>
            <th scope="row">reject</th>
            {cell(onlyCurrent)}
            {cell(both)}
          </tr>
        </tbody>
      </table>
    </Wide>
  );
}

function shareText(share: number): string {
  return share > 0 && share < 0.001 ? '< 0.1 %' : `${numberText(share * 100)} %`;
}

function RouteTable({ routes }: Pick<Figures, 'routes'>) {
  return (
    <Wide label="Routes">
      <table>
        <thead>
          <tr>
            <th>Route</th>
            <th class="number">Both accept</th>
            <th class="number">Newly rejected</th>
            <th class="number">Newly accepted</th>
            <th class="number">Both reject</th>
            <th class="number">Not checked</th>
          </tr>
        </thead>
        <tbody>
          {routes.map(({ route, none, onlyCandidate, onlyCurrent, both, dropped, failed }) => (
            <tr key={route}>
              <td>{route}</td>
              <td class="number">{numberText(none)}</td>
              <td class="number">
                {onlyCandidate > 0 ? <span class="badge bad">{numberText(onlyCandidate)}</span> : 0}
              </td>
              <td class="number">{onlyCurrent > 0 ? <span class="badge good">{numberText(onlyCurrent)}</span> : 0}</td>
              <td class="number">{numberText(both)}</td>
              <td class="number">{numberText(dropped + failed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

const MOST = 50;

function AccountTable({ accounts }: Pick<Figures, 'accounts'>) {
  return (
    <>
      <Wide label="Accounts">
        <table>
          <thead>
            <tr>
              <th>Account</th>
              <th class="number">Newly rejected</th>
              <th>Last time on</th>
              <th>By</th>
            </tr>
          </thead>
          <tbody>
            {accounts.slice(0, MOST).map(({ account, route, limit, rejected }) => (
              <tr key={account}>
                <td>
                  <a href={href('accounts', account)}>{account}</a>
                </td>
                <td class="number">{numberText(rejected)}</td>
                <td>{route}</td>
                <td>{limitName(limit)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {accounts.length > MOST && (
        <p class="soft">
          The {MOST} most rejected of {numberText(accounts.length)}.
        </p>
      )}
    </>
  );
}
