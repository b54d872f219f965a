import type { Windows } from '../api/answers.ts';
import { PAUSE_REASON, spanText, timeText } from '../parts/format.ts';
import { may } from '../session.ts';

type Block = NonNullable<Windows['blocked']>;

const WHAT: Readonly<Record<Block['scope'], string>> = {
  account: 'The account',
  route: 'This route',
  group: 'The group',
};

/** Which block it is, with its end and its reason. */
export function blockText({ scope, forMs, until, reason }: Block) {
  return (
    <>
      <strong>
        {WHAT[scope]} is {reason === PAUSE_REASON ? 'paused, because its provider takes no more requests,' : 'blocked'}
      </strong>{' '}
      for {spanText(forMs)}, until {timeText(until)}
      {reason === null || reason === PAUSE_REASON ? '.' : `: ${reason}`}
    </>
  );
}

/** The notice of a block. It changes each second, so it is not read out. */
export function BlockNotice({
  block,
  of,
  onUnblock,
}: {
  block: Block;
  /** The account or the route that the buttons name. */
  of: string;
  onUnblock: () => void;
}) {
  return (
    <div class="notice bad">
      <div class="row">
        <p>{blockText(block)}</p>
        {may('operator') && (
          <button type="button" aria-label={`Unblock ${of}…`} onClick={onUnblock}>
            Unblock…
          </button>
        )}
      </div>
    </div>
  );
}
