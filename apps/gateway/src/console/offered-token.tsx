import { Notice } from './parts/notice.tsx';
import { beginSession, caller, offeredToken } from './session.ts';

/** Asks whether the token of a link replaces the session of the tab. */
export function OfferedToken() {
  const { value } = offeredToken;
  if (value === undefined || caller.value === undefined) return null;
  return (
    <Notice kind="care">
      <p>The link that you opened has another token. You are still signed in as {caller.value.name}.</p>
      <div class="actions">
        <button type="button" onClick={() => beginSession(value)}>
          Use the token of the link
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            offeredToken.value = undefined;
          }}
        >
          Stay {caller.value.name}
        </button>
      </div>
    </Notice>
  );
}
