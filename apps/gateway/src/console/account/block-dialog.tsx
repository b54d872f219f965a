import { useState } from 'preact/hooks';
import { ask } from '../api/client.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';
import { EndFields, type Ending, endOfRequest } from '../parts/end-fields.tsx';

type End = '900000' | '3600000' | '86400000' | '604800000';

const ENDS: readonly (readonly [End, string])[] = [
  ['900000', 'In 15 minutes'],
  ['3600000', 'In 1 hour'],
  ['86400000', 'In 1 day'],
  ['604800000', 'In 7 days'],
];
/** The most that the gateway accepts. */
const LONGEST_REASON = 200;

/** The target of a block: an account, or one of its routes. */
export interface Blocking {
  readonly account: string;
  /** Undefined: all of them. */
  readonly route: string | undefined;
}

interface DialogProps extends Blocking {
  onDone: (text: string) => void;
  onClose: () => void;
}

/** Blocks an account, or one of its routes, until an end. */
export function BlockDialog({
  account,
  route,
  unlimited,
  isBlocked,
  onDone,
  onClose,
}: DialogProps & {
  /** The routes without a limit. A block does not reject there. */
  unlimited: readonly string[];
  /** Whether it is already blocked. The new block replaces the old one. */
  isBlocked: boolean;
}) {
  const of = nameOf({ account, route });
  const [ending, setEnding] = useState<Ending<End>>({ end: '3600000', at: '' });
  return (
    <ActionDialog
      title={`Block ${of}?`}
      button="Block"
      isDanger
      reasonHint="The client reads it in its 429, and the log has it."
      reasonLength={LONGEST_REASON}
      fields={<EndFields ends={ENDS} value={ending} onValue={setEnding} />}
      work={async (reason) => {
        const query = { account, route };
        await ask('PUT', 'v1/block', { query, body: { ...endOfRequest(ending), reason } });
        onDone(`${of} is blocked.`);
      }}
      onClose={onClose}
    >
      <p>
        Every gateway with the same store rejects every request with 429 until the end, whatever room its windows have.
        Nothing is charged.
        {isBlocked && ' This replaces the block of now.'}
      </p>
      {unlimited.length > 0 && (
        <p>Requests on routes without a limit are not checked, so they still pass: {unlimited.join(', ')}.</p>
      )}
    </ActionDialog>
  );
}

/** Lifts the block of an account, or of one of its routes. */
export function UnblockDialog({ account, route, onDone, onClose }: DialogProps) {
  const of = nameOf({ account, route });
  return (
    <ActionDialog
      title={`Unblock ${of}?`}
      button="Unblock"
      work={async (reason) => {
        await ask('DELETE', 'v1/block', { query: { account, route, reason } });
        onDone(`${of} is not blocked any more.`);
      }}
      onClose={onClose}
    >
      <p>
        The limits decide again, with the counts of before the block. Another gateway may repeat a rejection for a
        second.
        {route === undefined ? ' Blocks of single routes stay.' : ' A block of the account stays.'}
      </p>
    </ActionDialog>
  );
}

function nameOf({ account, route }: Blocking): string {
  return route === undefined ? account : `${account} on ${route}`;
}
