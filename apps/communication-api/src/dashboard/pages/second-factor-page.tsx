import type { JSX } from 'preact';
import type { Offer, SecondFactor } from '../../people/second-factors.ts';
import { totpUri, typedSecret } from '../../security/totp.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { PATHS } from '../paths.ts';
import { CodeField, PasswordField, TextField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { LoginLayout } from './login-layout.tsx';
import { Badge, Day, Done, Fact, Note } from './parts.tsx';
import { QrCode } from './qr-code.tsx';

/** The forms of the page. Each begins the ids of its inputs. */
export type SecondFactorForm = 'set-up' | 'codes' | 'off';

interface SecondFactorPageProps {
  readonly here: Here;
  /** Undefined: the member has none. */
  readonly factor: SecondFactor | undefined;
  readonly offer: Offer;
  /** The form that was sent, with its faults. */
  readonly sent?: { readonly form: SecondFactorForm; readonly inputs: Inputs } | undefined;
  readonly done: string | undefined;
}

const faultsOf = ({ sent }: SecondFactorPageProps, form: SecondFactorForm) =>
  sent?.form === form ? sent.inputs.faults : [];

/** The second factor of the person who looks at it. */
export function SecondFactorPage(props: SecondFactorPageProps): JSX.Element {
  const { here, factor, sent, done } = props;
  return (
    <LoginLayout here={here} title="Second factor" part="second factor" faulty={sent?.inputs.isFaulty}>
      {sent === undefined ? null : <FaultSummary faults={sent.inputs.faults} prefix={`${sent.form}-`} />}
      <Done text={done} />
      <h1>Second factor</h1>
      {factor === undefined ? <Required here={here} /> : null}
      {factor === undefined ? (
        <section class="panel" aria-labelledby="set-up">
          <h2 id="set-up">Set it up</h2>
          <p>Each sign-in then needs your password and a code of an app on your device.</p>
          <SetUpForm {...props} />
        </section>
      ) : (
        <Existing {...props} factor={factor} />
      )}
    </LoginLayout>
  );
}

const Required = ({ here }: { readonly here: Here }): JSX.Element | null => {
  if (here.lacksSecondFactorFor('own login'))
    return <Note tone="warn">Your organization requires a second factor. Set it up to go on.</Note>;
  return here.lacksSecondFactorFor('production') ? (
    <Note tone="warn">
      Your organization requires a second factor for production applications and for the organization. Without one, you
      can use applications for development only.
    </Note>
  ) : null;
};

function Existing(props: SecondFactorPageProps & { readonly factor: SecondFactor }): JSX.Element {
  const { here, factor, sent } = props;
  const { recoveryCodes, createdAt } = factor;
  return (
    <>
      <section class="panel">
        <dl class="facts">
          <Fact name="State">
            <Badge label="On" tone="good" />
          </Fact>
          <Fact name="Set up">
            <Day at={createdAt} />
          </Fact>
          <Fact name="Recovery codes left">{recoveryCodes}</Fact>
        </dl>
        {recoveryCodes < 3 ? (
          <Note tone="warn">Make new recovery codes, before you need one that you do not have.</Note>
        ) : null}
      </section>
      <details class="panel" open={sent?.form === 'codes'}>
        <summary>Make new recovery codes</summary>
        <div class="inside">
          <p>The earlier ones end.</p>
          <FormOf {...here.form(`${PATHS.secondFactor}/recovery-codes`)}>
            <ProofFields {...props} form="codes" />
            <button type="submit">Make new recovery codes</button>
          </FormOf>
        </div>
      </details>
      <details class="panel" open={sent?.form === 'set-up'}>
        <summary>Change to another device</summary>
        <div class="inside">
          <SetUpForm {...props} />
        </div>
      </details>
      {here.organization.second_factor_for === 'everything' ? (
        <p class="soft">Your organization requires a second factor, so you cannot turn it off.</p>
      ) : (
        <details class="panel" open={sent?.form === 'off'}>
          <summary>Turn it off</summary>
          <div class="inside">
            <p>Your password alone is enough to sign in then.</p>
            <FormOf {...here.form(`${PATHS.secondFactor}/off`)}>
              <ProofFields {...props} form="off" />
              <button type="submit" class="bad">
                Turn off the second factor
              </button>
            </FormOf>
          </div>
        </details>
      )}
    </>
  );
}

/** The password, and a code of the present second factor if there is one. */
function ProofFields(props: SecondFactorPageProps & { readonly form: SecondFactorForm }): JSX.Element {
  const { factor, form } = props;
  const [faults, prefix] = [faultsOf(props, form), `${form}-`];
  return (
    <>
      <PasswordField label="Your password" faults={faults} prefix={prefix} />
      {factor === undefined ? null : (
        <TextField
          name="code"
          label={form === 'set-up' ? 'Code of the present device' : 'Code'}
          hint="Six digits, or a recovery code."
          autocomplete="one-time-code"
          faults={faults}
          prefix={prefix}
        />
      )}
    </>
  );
}

function SetUpForm(props: SecondFactorPageProps): JSX.Element {
  const { here, offer, factor } = props;
  const { email } = here.member;
  return (
    <>
      <p>
        Scan this with an authenticator app, or type the secret into it. The secret is shown until you confirm it below.
      </p>
      <QrCode
        text={totpUri(offer.secret, { issuer: here.organization.name, email })}
        label="QR code for the authenticator app"
      />
      <p class="secret">
        <code>{typedSecret(offer.secret)}</code>
      </p>
      <FormOf {...here.form(PATHS.secondFactor)}>
        <input type="hidden" name="offer" value={offer.token} />
        <CodeField
          name="new_code"
          label={factor === undefined ? 'Code that the app shows' : 'Code that the new device shows'}
          faults={faultsOf(props, 'set-up')}
          prefix="set-up-"
        />
        <ProofFields {...props} form="set-up" />
        <button type="submit">{factor === undefined ? 'Set up the second factor' : 'Change the second factor'}</button>
      </FormOf>
      <p class="soft">Other browsers in which you are signed in are signed out.</p>
    </>
  );
}
