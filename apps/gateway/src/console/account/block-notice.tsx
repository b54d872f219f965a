import type { Windows } from '../api/answers.ts';
import { spanText, timeText } from '../parts/format.ts';
import { may } from '../session.ts';

type Block = NonNullable<Windows['blocked']>;

const WHAT: Readonly<Record<Block['scope'], string>> = {
  account: 'The account is blocked',
  route: 'This route is blocked',
  group: 'A group is blocked',
};

/** A block, with its end and its reason. It changes each second, so it is not read out. */
export function BlockNotice({
  block: { scope, forMs, until, reason },
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
        <p>
          <strong>{WHAT[scope]}</strong> for {spanText(forMs)}, until {timeText(until)}
          {reason === null ? '.' : `: ${reason}`}
        </p>
        {may('operator') && (
          <button type="button" aria-label={`Unblock ${of}…`} onClick={onUnblock}>
            Unblock…
          </button>
        )}
      </div>
    </div>
  );
}
