import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { countText } from '../parts/format.ts';
import type { RouteWindows } from '../parts/verdict.ts';

/** Resets the counters of an account, or of one route of it. */
export function ResetDialog({
  account,
  routes,
  route,
  onDone,
  onClose,
}: {
  account: string;
  /** The routes whose counters are deleted. */
  routes: readonly RouteWindows[];
  /** The only route; undefined: all routes. */
  route: string | undefined;
  onDone: (text: string) => void;
  onClose: () => void;
}) {
  const of = route === undefined ? account : `${account} on ${route}`;
  const windows = routes.flatMap((each) => each.windows);
  const full = windows.filter(({ remaining }) => remaining <= 0).length;
  return (
    <ActionDialog
      title={`Reset the counters of ${of}?`}
      button="Reset counters"
      isDanger
      work={async (reason) => {
        await ask('POST', 'v1/windows/reset', { body: { account, ...(route !== undefined && { route }), reason } });
        onDone(`The counters of ${of} are reset.`);
      }}
      onClose={onClose}
    >
      <p>
        This empties {countText(windows.length, 'window')} on {countText(routes.length, 'route')}, {full} of them full.
        The account gets its whole allowance again at once: what it has already sent is forgotten. A block stays.
        {route !== undefined && ' So does a count that several routes share: reset all counters to empty it.'}
      </p>
    </ActionDialog>
  );
}
