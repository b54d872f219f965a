import type { FormStep, LinkAnswer, LinkContext, LinkFlow, LinkStep, StepValues } from '../link-flow.ts';
import type { MockCredentials } from './credentials.ts';

/** The only code that the mock accepts. */
export const MOCK_CODE = '123456';
/** The only password that the mock refuses. */
export const WRONG_PASSWORD = 'wrong';

const MAX_SYNC_SECONDS = 600;

interface Mailbox {
  readonly address: string;
  readonly syncSeconds: number;
  readonly drafts: boolean;
}

type State = { readonly step: 'login' } | { readonly step: 'code'; readonly mailbox: Mailbox };

/** How the mock asks for an account. Each way that a real provider can take is one of its choices. */
export const mockLinkFlow: LinkFlow<State> = {
  begin: async () => ({ step: 'login' }),
  stepOf: ({ step }, context) => (step === 'login' ? loginStep(context) : CODE_STEP),
  submit: async (state, values) => (state.step === 'login' ? login(values) : enterCode(state.mailbox, values)),
};

const CODE_STEP: LinkStep = {
  kind: 'code',
  name: 'code',
  title: { en: 'Enter the code', de: 'Code eingeben' },
  intro: {
    en: `A real provider would send a code now. The code of the mock is ${MOCK_CODE}.`,
    de: `Ein echter Anbieter würde jetzt einen Code senden. Der Code des Test-Anbieters ist ${MOCK_CODE}.`,
  },
};

const loginStep = ({ loginHint, reconnect }: LinkContext): FormStep => ({
  kind: 'form',
  name: 'login',
  title: { en: 'Link a test mailbox', de: 'Test-Postfach verbinden' },
  intro: {
    en: 'The mock provider keeps emails in this service. Nothing leaves it.',
    de: 'Der Test-Anbieter behält E-Mails in diesem Dienst. Nichts verlässt ihn.',
  },
  fields: [
    {
      kind: 'email',
      name: 'address',
      label: { en: 'Email address', de: 'E-Mail-Adresse' },
      initial: reconnect?.name ?? loginHint ?? 'name@mock.test',
      required: true,
      autocomplete: 'username',
    },
    {
      kind: 'password',
      name: 'password',
      label: { en: 'Password', de: 'Passwort' },
      hint: {
        en: `Any password works, except “${WRONG_PASSWORD}”.`,
        de: `Jedes Passwort geht, außer „${WRONG_PASSWORD}“.`,
      },
      required: true,
      autocomplete: 'current-password',
    },
    {
      kind: 'choice',
      name: 'behaviour',
      label: { en: 'What happens next', de: 'Was danach geschieht' },
      initial: 'link',
      required: true,
      options: [
        { value: 'link', label: { en: 'The account is linked', de: 'Das Konto wird verbunden' } },
        { value: 'code', label: { en: 'The provider asks for a code', de: 'Der Anbieter verlangt einen Code' } },
        {
          value: 'restricted',
          label: { en: 'The provider refuses the account', de: 'Der Anbieter lehnt das Konto ab' },
        },
      ],
    },
    {
      kind: 'number',
      name: 'sync',
      label: { en: 'Length of the initial sync, in seconds', de: 'Dauer des ersten Abgleichs, in Sekunden' },
      initial: '0',
      min: 0,
      max: MAX_SYNC_SECONDS,
    },
    {
      kind: 'checkbox',
      name: 'drafts',
      label: { en: 'Send by drafts, as Gmail does', de: 'Über Entwürfe senden, wie Gmail' },
      hint: {
        en: 'Without drafts it sends like SMTP: the result of a send can stay unknown.',
        de: 'Ohne Entwürfe sendet es wie SMTP: Das Ergebnis einer Sendung kann unbekannt bleiben.',
      },
      initial: 'on',
    },
  ],
});

function login({ address, password, behaviour, sync = 0, drafts = false }: StepValues): LinkAnswer<State> {
  if (password === WRONG_PASSWORD)
    return {
      kind: 'invalid',
      faults: [
        {
          field: 'password',
          message: { en: 'The address or the password is wrong.', de: 'Die Adresse oder das Passwort ist falsch.' },
        },
      ],
    };
  if (behaviour === 'restricted')
    return {
      kind: 'refused',
      type: 'api/restricted_account',
      title: 'Account restricted',
      detail: 'The provider restricted this account.',
    };
  // The address identifies the mailbox, so it is stored in one spelling.
  const mailbox = { address: String(address).toLowerCase(), syncSeconds: Number(sync), drafts: drafts === true };
  return behaviour === 'code' ? { kind: 'next', state: { step: 'code', mailbox } } : identified(mailbox);
}

function enterCode(mailbox: Mailbox, { code }: StepValues): LinkAnswer<State> {
  if (code === MOCK_CODE) return identified(mailbox);
  return {
    kind: 'invalid',
    faults: [
      {
        field: 'code',
        message: { en: 'The code is not correct. Check it and try again.', de: 'Der Code stimmt nicht. Bitte prüfen.' },
      },
    ],
  };
}

function identified({ address, syncSeconds, drafts }: Mailbox): LinkAnswer<State> {
  const credentials: MockCredentials = { drafts };
  return {
    kind: 'identified',
    account: { providerUserId: address, name: address, credentials, initialSyncMs: syncSeconds * 1_000 },
  };
}
