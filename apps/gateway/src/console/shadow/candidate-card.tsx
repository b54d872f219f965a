import type { ShadowState } from '../api/answers.ts';
import { momentText, numberText } from '../parts/format.ts';
import { Json } from '../parts/json.tsx';

export const STORES = [
  ['same', 'the same as the limits'],
  ['memory', 'the memory of each process'],
] as const;

/** The running candidate, and the operator who started it. */
export function CandidateCard({
  candidate: { source, by, reason, at, sample, store, limits },
  durable,
}: {
  candidate: NonNullable<ShadowState['candidate']>;
  durable: boolean;
}) {
  return (
    <section class="card" aria-labelledby="candidate">
      <h2 id="candidate">Candidate</h2>
      <dl class="pairs">
        <dt>From</dt>
        <dd>
          {source === 'config' ? (
            <>
              the config; to stop it, remove <code>shadow</code> there and reload
            </>
          ) : (
            <>
              {by} <span class="soft">{reason}</span>
              {!durable && ' (ends with the process)'}
            </>
          )}
        </dd>
        {at && (
          <>
            <dt>Since</dt>
            <dd>{momentText(at)}</dd>
          </>
        )}
        <dt>Accounts</dt>
        <dd>{sample === 1 ? 'all' : `${numberText(sample * 100)} % of them, the same ones in every process`}</dd>
        <dt>Counters</dt>
        <dd>{STORES.find(([value]) => value === store)?.[1]}</dd>
      </dl>
      <details>
        <summary>Its limits</summary>
        <Json label="Limits of the candidate" text={JSON.stringify(limits, null, 2)} />
      </details>
    </section>
  );
}
