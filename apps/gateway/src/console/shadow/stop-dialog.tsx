import type { ShadowState } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { countText } from '../parts/format.ts';

/** Ends the candidate that an operator started. */
export async function stopShadow(reason: string): Promise<ShadowState> {
  return ask<ShadowState>('DELETE', 'v1/shadow', { query: { reason } });
}

/** Asks before the candidate ends. */
export function StopDialog({
  figures,
  onDone,
  onClose,
}: {
  figures: ShadowState['figures'];
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const { none, both, onlyCandidate, onlyCurrent } = figures?.total ?? NOTHING;
  return (
    <ActionDialog
      title="Stop the candidate?"
      button="Stop"
      isDanger
      work={async (reason) => {
        const { candidate } = await stopShadow(reason);
        onDone(
          candidate === null
            ? 'The candidate has ended.'
            : 'The candidate has ended. The candidate of the config runs.',
        );
      }}
      onClose={onClose}
    >
      <p>
        Its figures are lost: {countText(none + both + onlyCandidate + onlyCurrent, 'request')} at this gateway. The
        limits stay as they are. If the config has a candidate, the candidate of the config runs again.
      </p>
    </ActionDialog>
  );
}

const NOTHING = { none: 0, both: 0, onlyCandidate: 0, onlyCurrent: 0 };
