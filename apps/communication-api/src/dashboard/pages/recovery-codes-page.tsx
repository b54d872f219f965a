import type { JSX } from 'preact';
import type { Here } from '../here.ts';
import { PATHS } from '../paths.ts';
import { LoginLayout } from './login-layout.tsx';

interface RecoveryCodesPageProps {
  readonly here: Here;
  readonly codes: readonly string[];
}

/** The only page that shows recovery codes. */
export const RecoveryCodesPage = ({ here, codes }: RecoveryCodesPageProps): JSX.Element => (
  <LoginLayout here={here} title="Recovery codes" part="second factor">
    <h1>Recovery codes</h1>
    <section class="panel">
      <p>If you lose your device, each of these codes signs you in once, in place of a code of the app.</p>
      <ul class="secret codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <p>
        <strong>Copy them now: they are never shown again.</strong> Keep them apart from your password.
      </p>
      <p>
        <a class="button" href={PATHS.applications}>
          I have saved them
        </a>
      </p>
    </section>
  </LoginLayout>
);
