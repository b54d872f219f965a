import { useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, ask } from '../api/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Json } from '../parts/json.tsx';
import { ErrorNotice } from '../parts/notice.tsx';

/** The `limits` of the config with every adjustment in them, to copy. */
export function ExportDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const [said, setSaid] = useState('');
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    ask<unknown>('GET', 'v1/limits/export').then(
      (limits) => setText(JSON.stringify({ limits }, null, 2)),
      (reason: unknown) => setError(reason as ApiError),
    );
  }, []);
  const copy = async (): Promise<void> => {
    try {
      // Browsers offer no clipboard without TLS, except on the machine itself.
      await navigator.clipboard.writeText(text ?? '');
      setSaid('Copied.');
    } catch {
      if (place.current) getSelection()?.selectAllChildren(place.current);
      setSaid('The browser does not let the console copy. The text is selected: copy it by keyboard.');
    }
  };
  return (
    <Dialog title="Export" onClose={onClose}>
      <p>
        These are the limits of the config with every adjustment written into them. Put them into the config, reload,
        and then reset the adjustments.
      </p>
      <ErrorNotice error={error} />
      {text !== undefined && (
        <>
          <div class="actions">
            <button type="button" onClick={() => void copy()}>
              Copy
            </button>
            <span role="status">{said}</span>
          </div>
          <div ref={place}>
            <Json label="Limits" text={text} />
          </div>
        </>
      )}
    </Dialog>
  );
}
