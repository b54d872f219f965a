import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Notice } from './parts/notice.tsx';

type State = { readonly Page?: FunctionComponent; readonly isLost?: boolean };

/** A page whose code is loaded when it is first shown, so that the console begins sooner. */
export function lazyPage(load: () => Promise<FunctionComponent>): FunctionComponent {
  let known: State = {};
  return function LazyPage() {
    const [{ Page, isLost }, setState] = useState(known);
    useEffect(() => {
      if (Page !== undefined) return;
      load().then(
        (loaded) => {
          known = { Page: loaded };
          setState(known);
        },
        () => setState({ isLost: true }),
      );
    }, []);
    if (isLost) return <Lost />;
    return Page === undefined ? <p class="soft">Loading …</p> : <Page />;
  };
}

/** The files of another version of the gateway differ. */
function Lost() {
  return (
    <Notice kind="bad">
      <p>This page could not be loaded. The gateway may be away, or may have been replaced by another version.</p>
      <div class="actions">
        <button type="button" onClick={() => location.reload()}>
          Load the console again
        </button>
      </div>
    </Notice>
  );
}
