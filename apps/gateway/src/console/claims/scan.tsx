import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { Choice } from '../parts/field.tsx';
import { countText, spanText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';
import { ClaimState } from './claim-state.tsx';

const STATES = [
  ['orphan', 'orphans'],
  ['in_progress', 'in progress'],
  ['completed', 'completed'],
  ['', 'every state'],
] as const;

interface Page {
  readonly claims: readonly Claim[];
  readonly looked: number;
  readonly next: string | null;
}

/** Looks for claims without their keys, page by page, and only if an operator asks: it costs the store work. */
export function Scan() {
  const [state, setState] = useState<(typeof STATES)[number][0]>('orphan');
  const [found, setFound] = useState<Page>();
  const { run, isRunning, error } = useAction();
  const scan = (before: Page | undefined): void =>
    run(async () => {
      const query = { state: state || undefined, cursor: before?.next ?? undefined };
      const page = await ask<Page>('GET', 'v1/claims/scan', { query });
      setFound(before === undefined ? page : joined(before, page));
    });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setFound(undefined);
    scan(undefined);
  };
  return (
    <section aria-labelledby="scan">
      <h2 id="scan">Scan the store</h2>
      <p class="soft">Finds claims without their keys, such as orphans that no retry has met.</p>
      <form class="inline" onSubmit={submit}>
        <Choice
          label="State"
          value={state}
          options={STATES}
          onValue={(chosen) => {
            setState(chosen);
            setFound(undefined);
          }}
        />
        <button type="submit" disabled={isRunning}>
          Scan
        </button>
      </form>
      <ErrorNotice error={error} />
      {found && (
        <>
          <p role="status">
            {countText(found.claims.length, 'claim')} found, {countText(found.looked, 'claim')} looked at
            {found.next === null ? '. The scan is at its end.' : '.'}
          </p>
          {found.claims.length > 0 && <ClaimTable claims={found.claims} />}
          {found.next !== null && (
            <div class="actions">
              <button type="button" class="quiet" disabled={isRunning} onClick={() => scan(found)}>
                Go on
              </button>
            </div>
          )}
        </>
      )}
    </section>
  );
}

/** A claim may be on two pages; the later one is newer. */
function joined(before: Page, page: Page): Page {
  const claims = new Map([...before.claims, ...page.claims].map((claim) => [nameOf(claim), claim]));
  return { claims: [...claims.values()], looked: before.looked + page.looked, next: page.next };
}

function nameOf({ application, key }: Claim): string {
  return JSON.stringify([application, key]);
}

function ClaimTable({ claims }: { claims: readonly Claim[] }) {
  return (
    <Wide label="Claims">
      <table>
        <thead>
          <tr>
            <th>Key</th>
            <th>Application</th>
            <th>State</th>
            <th class="number">Remembered for</th>
          </tr>
        </thead>
        <tbody>
          {claims.map((claim) => (
            <tr key={nameOf(claim)}>
              <td>
                <a href={href('claims', undefined, { application: claim.application, key: claim.key })}>{claim.key}</a>
              </td>
              <td>{claim.application}</td>
              <td>
                <ClaimState state={claim.state} />
              </td>
              <td class="number">{claim.keptMs > 0 ? spanText(claim.keptMs) : 'until resolved'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
