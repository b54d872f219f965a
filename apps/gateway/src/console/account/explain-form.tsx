import { useState } from 'preact/hooks';
import { useAction } from '../api/action.ts';
import type { Explanation } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { Choice, Field } from '../parts/field.tsx';
import { spanText, timeText } from '../parts/format.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { windowName } from '../parts/verdict.ts';

/** Shows the decision that a request would get now. Nothing is charged. */
export function ExplainForm({ account, routes }: { account: string; routes: readonly string[] }) {
  const [route, setRoute] = useState(routes[0] as string);
  const [cost, setCost] = useState('1');
  const [told, setTold] = useState<{ readonly what: Explanation; readonly at: Date }>();
  const { run, isRunning, error } = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setTold(undefined);
    run(async () => {
      const what = await ask<Explanation>('POST', 'v1/explain', { body: { account, route, cost: Number(cost) } });
      setTold({ what, at: new Date() });
    });
  };
  return (
    <section class="card" aria-labelledby="explain">
      <h2 id="explain">What would a request be told now?</h2>
      <form class="inline" onSubmit={submit}>
        <Choice label="Route" value={route} options={routes.map((each) => [each, each])} onValue={setRoute} />
        <Field label="Cost" type="number" required min={1} value={cost} onValue={setCost} />
        <button type="submit" disabled={isRunning}>
          Ask
        </button>
      </form>
      <ErrorNotice error={error} />
      {told && (
        <Notice kind={told.what.accepted ? 'good' : 'bad'}>
          <p>{sentenceOf(told.what)}</p>
          <p class="soft">Asked at {timeText(told.at)}. Nothing was charged.</p>
        </Notice>
      )}
    </section>
  );
}

function sentenceOf(told: Explanation): string {
  const { accepted, status, blocked, inFlight, windows } = told;
  if (accepted)
    return windows.length === 0 && inFlight === null
      ? 'Accepted: it has no limit.'
      : 'Accepted: every limit has room for it.';
  const reason = blocked?.reason ? ` (${blocked.reason})` : '';
  return `Rejected with ${status} by ${rejecting(told)}${reason}. ${whenText(told)}`;
}

function rejecting({ rejectedBy, blocked, inFlight }: Explanation): string {
  if (blocked !== null) return 'a block';
  if (rejectedBy !== null) return `${windowName(rejectedBy)}, with ${rejectedBy.remaining} left`;
  const of = inFlight?.group === undefined ? '' : ` of the group ${inFlight.group}`;
  return `the requests in flight${of}: ${inFlight?.running} of at most ${inFlight?.max} run`;
}

function whenText({ rejectedBy, blocked, passesInMs }: Explanation): string {
  if (passesInMs !== null) return `It passes in ${spanText(passesInMs)}, if nothing else comes.`;
  return rejectedBy === null && blocked === null
    ? 'It passes when one has ended.'
    : 'It never passes: its cost is more than the limit.';
}
