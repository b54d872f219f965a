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
        “This gateway” means the process that answers, or its workers together. Limits, windows and claims are in the
        store, which gateways may share. The console does everything by the Admin API; <code>v1/openapi.json</code>{' '}
        describes it.
      </p>
    </Dialog>
  );
}
