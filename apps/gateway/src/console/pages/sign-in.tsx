import { useEffect, useRef, useState } from 'preact/hooks';
import { Field } from '../parts/field.tsx';
import { Notice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { beginSession, endedBy } from '../session.ts';

/** Asks for a token. */
export function SignInPage() {
  const [given, setGiven] = useState('');
  const form = useRef<HTMLFormElement>(null);
  // After the title's effect, which takes the focus on every other page.
  useEffect(() => form.current?.querySelector('input')?.focus(), []);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    beginSession(given.trim());
  };
  return (
    <main class="sign-in">
      <PageTitle title="headgate console" />
      {endedBy.value && <Notice kind="bad">{endedBy.value}</Notice>}
      <form ref={form} onSubmit={submit}>
        <Field
          label="Token"
          type="password"
          autocomplete="off"
          required
          blankFault="Paste a token."
          hint="One of admin.tokens of the config. It stays in this tab, and ends with it."
          value={given}
          onValue={setGiven}
        />
        <button type="submit">Sign in</button>
      </form>
    </main>
  );
}
