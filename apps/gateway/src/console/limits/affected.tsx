import type { LimitPreview } from '../api/answers.ts';
import { countText, numberText, spanText } from '../parts/format.ts';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';

/** How many accounts would get other limits, and how many of them would be rejected. */
export function affectedText(affected: number, now: LimitPreview['now']): string {
  const rejected = now.filter(({ wouldReject }) => wouldReject).length;
  const first = `${countText(affected, 'account')} that this gateway has seen lately would get another limit.`;
  if (now.length === 0) return first;
  const of = now.length === affected ? 'them' : `the ${now.length} busiest`;
  return `${first} Of ${of}, ${numberText(rejected)} would be rejected now. ${now.length === 1 ? rateText(now[0] as Account) : ''}`;
}

type Account = LimitPreview['now'][number];

/** How long the changed limit would be enough for an account. */
function rateText({ account, perMinute, fullAfterMs }: Account): string {
  const rate = `${account} makes ${numberText(perMinute)} requests per minute at this gateway. Those at other processes count too; by these alone,`;
  if (fullAfterMs === null) return `${rate} the new limit is never full.`;
  return `${rate} the new limit is full after about ${spanText(fullAfterMs)}.`;
}

/** The accounts that would get other limits. Accounts that would be rejected come first. */
export function Affected({ now }: Pick<LimitPreview, 'now'>) {
  if (now.length === 0) return null;
  return (
    <Wide label="Accounts">
      <table>
        <thead>
          <tr>
            <th>Account</th>
            <th>Route</th>
            <th class="number">Used</th>
            <th>Next request</th>
            <th class="number">Per minute, here</th>
            <th class="number">Full after, by these</th>
          </tr>
        </thead>
        <tbody>
          {now.map(({ account, route, used, max, wouldReject, perMinute, fullAfterMs }) => (
            <tr key={account}>
              <td>
                <a href={href('accounts', account)}>{account}</a>
              </td>
              <td>{route}</td>
              <td class="number">
                {numberText(used)} of {numberText(max)}
              </td>
              <td>
                <span class={`badge ${wouldReject ? 'bad' : 'good'}`}>{wouldReject ? 'rejected' : 'accepted'}</span>
              </td>
              <td class="number">{numberText(perMinute)}</td>
              <td class="number">{fullAfterMs === null ? 'never' : spanText(fullAfterMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
