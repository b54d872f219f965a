import type { Limit } from '../api/answers.ts';
import { numberText, timeText, windowsText } from '../parts/format.ts';

/** A limit as it is now: the config's windows, and the operator's adjustment. */
export function CurrentLimit({ limit: { base, adjusted } }: { limit: Limit }) {
  return (
    <dl class="pairs">
      <dt>In the config</dt>
      <dd>{base === null ? 'not set here: the limit of another layer applies, if there is one' : windowsText(base)}</dd>
      <dt>Set by an operator</dt>
      <dd>
        {adjusted === null ? (
          'nothing'
        ) : (
          <>
            {windowsText(adjusted.windows)} <Setter adjusted={adjusted} />
          </>
        )}
      </dd>
    </dl>
  );
}

/** The operator who set a limit, when, why, and until when. */
export function Setter({ adjusted: { by, at, reason, until } }: { adjusted: NonNullable<Limit['adjusted']> }) {
  return (
    <span class="soft">
      by {by}, {timeText(at)}
      {reason && `: ${reason}`}
      {` (${until === null ? 'without an end' : `until ${timeText(until)}`})`}
    </span>
  );
}

/** The windows of a layer. A layer without them leaves the limit to the other layers. */
export function ownText(windows: readonly string[] | null): string {
  return windows === null ? 'not set' : windowsText(windows);
}

/** The most requests in flight of a layer; empty if it leaves them to the other layers. */
export function inFlightText(inFlight: Limit['inFlight']): string {
  if (inFlight === null) return '';
  return inFlight === false ? 'no bound' : `at most ${numberText(inFlight)}`;
}
