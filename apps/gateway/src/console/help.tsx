import { Dialog } from './parts/dialog.tsx';

/** The keys, and where to read more. */
export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Help" onClose={onClose}>
      <dl class="pairs">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search for an account</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This help</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close a window, as Back does</dd>
      </dl>
      <p>
        Figures of “this gateway” are those of the process that answers, or of its workers together. Limits, windows and
        claims are those of the store, which gateways may share. Everything here is done by the Admin API; its
        description is <code>v1/openapi.json</code>.
      </p>
    </Dialog>
  );
}
