import type {
  Field,
  FormStep,
  LinkAnswer,
  LinkContext,
  LinkFlow,
  LinkStep,
  OwnerFault,
  StepValues,
} from '../link-flow.ts';
import { ENCRYPTIONS, type ImapCredentials } from './credentials.ts';
import { type Discover, type Discovered, type MailSettings, type ServerSettings, settingsOf } from './discovery.ts';
import { GOOGLE, OUTLOOK, type SignInHost, signInHostOf } from './known-servers.ts';
import type { ServerFailure } from './server-error.ts';
import { type TestResult, testServers } from './server-test.ts';
import { TEXT } from './text.ts';

/** Why the user sees the form with the servers. */
type Reason = 'wanted' | 'unknown' | 'confirm' | 'failed' | 'app-password';

type State =
  | { readonly step: 'login' }
  | {
      readonly step: 'servers';
      readonly reason: Reason;
      readonly address: string;
      readonly settings: MailSettings;
      /** Stored sealed with the session, and erased with it. */
      readonly password: string;
    }
  | { readonly step: 'sign-in'; readonly host: SignInHost; readonly address: string; readonly password: string };

type Answer = LinkAnswer<State>;

/**
 * Asks for an address and a password, finds the servers, and logs in to both. It asks the user for the servers if they
 * are not found, or do not work. The words of a server, and the progress of a connection, are not shown: the form must
 * not be a way to explore a network.
 */
export function createImapLinkFlow(discover: Discover): LinkFlow<State> {
  return {
    begin: async () => ({ step: 'login' }),
    stepOf: (state, context) => stepOf(state, context),
    submit: async (state, values, context) => {
      if (state.step === 'login') return login(values, context, discover);
      if (state.step === 'servers') return enterServers(state, values, context);
      return chooseWay(state, values);
    },
  };
}

function stepOf(state: State, context: LinkContext): LinkStep {
  if (state.step === 'login') return loginStep(context);
  return state.step === 'servers' ? serversStep(state) : signInStep(state, context);
}

const loginStep = ({ loginHint, reconnect }: LinkContext): FormStep => ({
  kind: 'form',
  name: 'login',
  title: TEXT.login.title,
  intro: TEXT.login.intro,
  fields: [
    {
      kind: 'email',
      name: 'address',
      label: TEXT.login.address,
      initial: reconnect?.name ?? loginHint,
      required: true,
      autocomplete: 'username',
    },
    {
      kind: 'password',
      name: 'password',
      label: TEXT.login.password,
      hint: TEXT.login.passwordHint,
      required: true,
      autocomplete: 'current-password',
    },
    { kind: 'checkbox', name: 'advanced', label: TEXT.login.advanced },
  ],
});

async function login(values: StepValues, context: LinkContext, discover: Discover): Promise<Answer> {
  const [address, password] = [String(values.address), String(values.password)];
  const before = serversBefore(context, address);
  const found: Discovered =
    before === undefined ? await discover(address, context.net, context.signal) : { kind: 'servers', settings: before };
  if (found.kind === 'sign-in')
    return { kind: 'next', state: { step: 'sign-in', host: found.host, address, password } };
  const ask = (reason: Reason, faults?: readonly OwnerFault[]): Answer => ({
    kind: 'next',
    state: { step: 'servers', reason, address, settings: found.settings, password },
    faults,
  });
  if (values.advanced === true) return ask('wanted');
  if (found.kind === 'guess') return ask(found.isKnown ? 'confirm' : 'unknown');
  const credentials = credentialsOf(found.settings, password);
  const result = await testServers(credentials, context.net, context.signal);
  if (works(result)) return identified(address, credentials);
  const failures = [result.imap, result.smtp].filter((failure) => failure !== undefined);
  const isAll = (failure: ServerFailure): boolean => failures.every((each) => each === failure);
  if (failures.length === 2 && isAll('credentials'))
    return { kind: 'invalid', faults: [{ field: 'password', message: TEXT.fault.login }] };
  if (isAll('unavailable')) return { kind: 'invalid', faults: [{ message: TEXT.fault.unavailable }] };
  if (isAll('proxy_credentials')) return { kind: 'invalid', faults: [{ message: TEXT.fault.proxy }] };
  return ask('failed', faultsOf(result));
}

/** The servers of a reconnected account: they were right, so they are not looked for again. */
function serversBefore({ reconnect }: LinkContext, address: string): MailSettings | undefined {
  if (reconnect === undefined || reconnect.name.toLowerCase() !== address.toLowerCase()) return undefined;
  const { imap, smtp } = reconnect.credentials as ImapCredentials;
  const { password: _, ...imapSettings } = imap;
  const { password: __, ...smtpSettings } = smtp;
  return { imap: imapSettings, smtp: smtpSettings };
}

/** How each server is entered. */
const HALVES = ['imap', 'smtp'] as const;
type Half = (typeof HALVES)[number];

const serversStep = ({ reason, address, settings, password }: Extract<State, { step: 'servers' }>): FormStep => ({
  kind: 'form',
  name: 'servers',
  title: TEXT.servers.title,
  intro: TEXT.servers.intro[reason](address),
  fields: [
    ...HALVES.flatMap((half) => serverFields(half, settings[half])),
    {
      kind: 'password',
      name: 'password',
      label: TEXT.login.password,
      autocomplete: 'current-password',
      ...(password === '' ? { required: true } : { hint: TEXT.servers.passwordKept }),
    },
  ],
});

const serverFields = (half: Half, { host, port, encryption, user }: ServerSettings): readonly Field[] => [
  { kind: 'text', name: `${half}_host`, label: TEXT.servers[half].host, initial: host, required: true },
  {
    kind: 'number',
    name: `${half}_port`,
    label: TEXT.servers[half].port,
    initial: String(port),
    min: 1,
    max: 65_535,
    beside: true,
    required: true,
    hint: TEXT.servers[half].portHint,
  },
  {
    kind: 'choice',
    name: `${half}_encryption`,
    label: TEXT.servers[half].encryption,
    initial: encryption,
    required: true,
    options: ENCRYPTIONS.map((value) => ({ value, label: TEXT.servers.encryptions[value] })),
  },
  {
    kind: 'text',
    name: `${half}_user`,
    label: TEXT.servers[half].user,
    initial: user,
    required: true,
    autocomplete: 'username',
  },
];

async function enterServers(
  state: Extract<State, { step: 'servers' }>,
  values: StepValues,
  { net, signal }: LinkContext,
): Promise<Answer> {
  const settings = { imap: enteredServer('imap', values), smtp: enteredServer('smtp', values) };
  const password = values.password === undefined ? state.password : String(values.password);
  const credentials = credentialsOf(settings, password);
  const result = await testServers(credentials, net, signal);
  if (works(result)) return identified(state.address, credentials);
  // The page comes again with the entered values, and keeps the password.
  return {
    kind: 'next',
    state: { ...state, reason: 'failed', settings, password },
    faults: faultsOf(result, signInHostOf(settings.imap.host)),
  };
}

const enteredServer = (half: Half, values: StepValues): ServerSettings => ({
  host: String(values[`${half}_host`]),
  port: Number(values[`${half}_port`]),
  encryption: ENCRYPTIONS.find((each) => each === values[`${half}_encryption`]) ?? 'tls',
  user: String(values[`${half}_user`]),
});

const credentialsOf = ({ imap, smtp }: MailSettings, password: string): ImapCredentials => ({
  imap: { ...imap, password },
  smtp: { ...smtp, password },
});

const works = ({ imap, smtp }: TestResult): boolean => imap === undefined && smtp === undefined;

function faultsOf({ imap, smtp }: TestResult, signInHost?: SignInHost): readonly OwnerFault[] {
  if (imap === 'proxy_credentials' || smtp === 'proxy_credentials') return [{ message: TEXT.fault.proxy }];
  if (imap === 'credentials' && signInHost !== undefined)
    return [{ field: 'password', message: TEXT.signIn[signInHost].notOffered }];
  if (imap === 'credentials' && smtp === 'credentials') return [{ field: 'password', message: TEXT.fault.login }];
  return [...halfFaults('imap', imap), ...halfFaults('smtp', smtp)];
}

/** One text for all reasons why no connection was made: a form that names the reason can search a network. */
function halfFaults(half: Half, failure: ServerFailure | undefined): readonly OwnerFault[] {
  if (failure === undefined) return [];
  const text = TEXT.fault[half];
  if (failure === 'credentials') return [{ field: `${half}_user`, message: text.credentials }];
  if (failure === 'unavailable') return [{ field: `${half}_host`, message: text.unavailable }];
  // Host and port are marked together, whichever of them is wrong.
  return [
    { field: `${half}_host`, message: text.unreachable },
    { field: `${half}_port`, message: text.port },
  ];
}

function identified(address: string, credentials: ImapCredentials): Answer {
  const { user, host } = credentials.imap;
  // Users of different servers may share a name. Servers ignore the case of a name.
  const login = user.includes('@') ? user : `${user}@${host}`;
  return { kind: 'identified', account: { providerUserId: login.toLowerCase(), name: address, credentials } };
}

function signInStep({ host }: Extract<State, { step: 'sign-in' }>, { offered }: LinkContext): FormStep {
  const text = TEXT.signIn[host];
  const isOffered = offered.includes(host);
  return {
    kind: 'form',
    name: 'sign-in',
    title: text.title,
    intro: isOffered ? text.offered : text.notOffered,
    fields: [
      {
        kind: 'choice',
        name: 'way',
        label: TEXT.signIn.way,
        initial: isOffered ? host : 'servers',
        required: true,
        options: [
          ...(isOffered ? [{ value: host, label: text.signIn }] : []),
          { value: 'servers', label: text.servers },
          { value: 'login', label: TEXT.signIn.login },
        ],
      },
    ],
  };
}

function chooseWay({ host, address, password }: Extract<State, { step: 'sign-in' }>, { way }: StepValues): Answer {
  if (way === host) return { kind: 'provider', name: host };
  if (way !== 'servers') return { kind: 'next', state: { step: 'login' } };
  const settings = settingsOf(host === 'google' ? GOOGLE : OUTLOOK, address);
  const reason = host === 'google' ? 'app-password' : 'wanted';
  return { kind: 'next', state: { step: 'servers', reason, address, settings, password } };
}
