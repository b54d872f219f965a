import { useState } from 'preact/hooks';
import type { Claim } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { numberText, spanText } from '../parts/format.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { may } from '../session.ts';
import { ClaimState, MEANINGS } from './claim-state.tsx';
import { CompleteDialog } from './complete-dialog.tsx';
import { ReleaseDialog } from './release-dialog.tsx';

const EVERY_MS = 2_000;

/** One claim, and the operator's actions on it. */
export function ClaimCard({ application, idempotencyKey }: { application: string; idempotencyKey: string }) {
  const query = { application, key: idempotencyKey };
  const { value, error, refresh } = usePolled(JSON.stringify(query), EVERY_MS, (signal) =>
    ask<Claim>('GET', 'v1/claims', { query, signal }),
  );
  const [open, setOpen] = useState<'complete' | 'release'>();
  const [done, setDone] = useState('');
  const parts = {
    onDone: (text: string) => {
      setDone(text);
      refresh();
    },
    onClose: () => setOpen(undefined),
  };
  const claim = error?.status === 404 ? undefined : value;
  return (
    <section class="card" aria-labelledby="claim">
      <div class="row">
        <h2 id="claim">
          {idempotencyKey} <span class="soft">of {application}</span>
        </h2>
        {claim && <ClaimState state={claim.state} />}
      </div>
      {done !== '' && <Notice kind="good">{done}</Notice>}
      {error?.status === 404 ? <p>{error.message}</p> : <ErrorNotice error={error} />}
      {claim && (
        <>
          <p>{MEANINGS[claim.state]}</p>
          <Figures claim={claim} />
          {may('operator') && (claim.state === 'orphan' || claim.state === 'in_progress') && (
            <>
              <p>
                Ask the provider whether it has executed the request. If it has, complete the claim with the answer that
                the client should get. If it has not, and will not, release the claim.
              </p>
              <div class="actions">
                <button type="button" onClick={() => setOpen('complete')}>
                  Complete…
                </button>
                <button type="button" class="danger" onClick={() => setOpen('release')}>
                  Release…
                </button>
              </div>
            </>
          )}
          {open === 'complete' && <CompleteDialog claim={claim} {...parts} />}
          {open === 'release' && <ReleaseDialog claim={claim} {...parts} />}
        </>
      )}
    </section>
  );
}

function Figures({ claim }: { claim: Claim }) {
  const { generation, dispatched, inherited, leaseMs, keptMs, status, valueBytes } = claim;
  return (
    <dl class="pairs">
      <dt>May have been executed</dt>
      <dd>
        {dispatched || inherited ? 'yes' : 'no'}
        {inherited && ', by an earlier owner'}
      </dd>
      <dt>Lease of its owner</dt>
      <dd>{leaseMs > 0 ? `expires in ${spanText(leaseMs)}` : 'none'}</dd>
      <dt>Remembered for</dt>
      <dd>{keptMs > 0 ? spanText(keptMs) : 'until it is resolved'}</dd>
      <dt>Owners so far</dt>
      <dd>{numberText(generation)}</dd>
      {status !== null && (
        <>
          <dt>Stored answer</dt>
          <dd>
            status {status}, {valueBytes === null ? 'too large to be stored' : `${numberText(valueBytes)} bytes`}
          </dd>
        </>
      )}
    </dl>
  );
}
