import { Notice } from '../parts/notice.tsx';
import { Tick } from '../parts/tick.tsx';

/** Likely slips of the hand. The operator must confirm them. */
export function Warnings({
  warnings,
  isConfirmed,
  onConfirmed,
}: {
  warnings: readonly string[];
  isConfirmed: boolean;
  onConfirmed: (isConfirmed: boolean) => void;
}) {
  if (warnings.length === 0) return null;
  return (
    <>
      <Notice kind="care">
        {warnings.map((warning) => (
          <p key={warning}>{warning}</p>
        ))}
      </Notice>
      <Tick value={isConfirmed} onValue={onConfirmed} required>
        I have read the warning, and I mean this change.
      </Tick>
    </>
  );
}
