/** The wizard in English. Every other language defines the same texts. */
export const en = {
  languageName: 'English',
  direction: 'ltr' as 'ltr' | 'rtl',
  development: 'Test environment. Link only accounts for tests.',
  purpose: (application: string) => `${application} asks you to link an account.`,
  skip: 'Skip to the content',
  languages: 'Language',
  errorPrefix: 'Error: ',
  submit: 'Continue',
  sending: 'One moment…',
  back: 'Choose another provider',
  restart: 'Start again',
  cancel: (application: string) => `Cancel and return to ${application}`,
  returnTo: (application: string) => `Return to ${application}`,
  optional: 'optional',
  choose: {
    title: 'Choose your provider',
    intro: (application: string) => `Which account do you want to use with ${application}?`,
    list: 'Providers',
    search: 'Search providers',
    searchSubmit: 'Search',
    none: 'No provider has this name.',
  },
  faults: {
    summary: 'Please check what you entered',
    general: 'That did not work',
    required: 'Fill in this field.',
    email: 'Enter an email address, such as name@example.com.',
    number: 'Enter a whole number within the limits.',
    choice: 'Choose one of the options.',
    tooLong: 'This is too long.',
    proxyHost: 'Enter a host name or an address, without a protocol.',
    proxyPort: 'Enter a port from 1 to 65535.',
    provider: 'Choose one of the providers.',
    denied: 'You did not allow the access. Without it, the account cannot be linked.',
    stale: 'This sign-in was already used, or a newer one was started. Please sign in again.',
    failed: 'The provider did not answer as expected. Please try again.',
    paused: (seconds: number) =>
      `There were too many attempts. You can try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}.`,
  },
  code: 'Code',
  wait: 'We are waiting for the provider. This page goes on by itself.',
  waitSubmit: 'Check now',
  away: (host: string) => `You continue at ${host}, and come back here afterwards.`,
  range: (min: number, max: number) => `From ${min} to ${max}.`,
  proxy: {
    title: 'Use your own proxy',
    intro: 'Connections to the provider will use this proxy. Leave the host empty to use none of your own.',
    protocol: 'Protocol',
    host: 'Host',
    port: 'Port',
    username: 'User name',
    password: 'Password',
    passwordKept: 'Leave this empty to keep the password that you entered.',
  },
  country: {
    label: 'Country of the connection',
    hint: 'Choose the country in which you usually use this account.',
    automatic: 'Choose automatically',
  },
  wrongAccount: {
    title: 'This is another account',
    detail: (expected: string, other: string) =>
      `You signed in to ${other}. This link is for ${expected}. Please sign in to that account.`,
    retry: 'Try again',
  },
  sync: {
    title: 'Your account is being prepared',
    intro: (account: string) => `${account} is linked. We are loading its data for the first time.`,
    progress: 'Progress of the initial sync',
    percent: (percent: string) => `${percent} done`,
    done: 'Done. You are being sent back.',
    leave: 'You do not have to wait. The rest is done without you, and you can close this window.',
  },
  linked: {
    title: 'Your account is linked',
    detail: (application: string) => `You can close this window, or return to ${application}.`,
  },
  cancelled: {
    title: 'You cancelled',
    detail: (application: string) => `No account was linked. To try again, start from ${application}.`,
  },
  unknownLink: {
    title: 'This link does not exist',
    detail: 'Check that the address is complete, or ask for a new link where you found this one.',
  },
  expired: {
    title: 'This link has expired',
    detail: (application: string) => `Go back to ${application} and start again.`,
  },
  used: {
    title: 'This link was already used',
    detail: (application: string) =>
      `A link works once. If you want to link another account, go back to ${application} and start again.`,
  },
  removed: {
    title: 'The account no longer exists',
    detail: (application: string) =>
      `The account that this link is for was removed. Go back to ${application} and start again.`,
  },
  unavailable: {
    title: 'This provider is not available',
    detail: (application: string) => `Go back to ${application} and start again.`,
  },
  forged: {
    title: 'We could not check this form',
    detail: 'The page was open for too long, or it was not sent from here. Open your link again.',
  },
  unreachable: {
    title: 'The provider cannot be reached',
    detail: 'It did not answer as expected. Please try again in a moment.',
    retry: 'Try again',
  },
  strayCallback: {
    title: 'We cannot continue this sign-in',
    detail: 'It was started in another browser, or too long ago. Open your link again.',
  },
  cookies: {
    title: 'Please allow cookies',
    detail: 'This page needs a cookie until your account is linked. Allow cookies for this site, then try again.',
    retry: 'Try again',
  },
  tooMany: {
    title: 'Too many requests',
    detail: (seconds: number) =>
      `Please wait ${seconds === 1 ? '1 second' : `${seconds} seconds`}, then go back and try again.`,
  },
  wrongHost: {
    title: 'This address has no sign-in pages',
    detail: 'The server does not know the host name of this address. Check that the address is correct.',
  },
  notFound: { title: 'This page does not exist', detail: 'Open your link again.' },
  invalid: { title: 'We did not understand this request', detail: 'Go back and try again.' },
  failed: {
    title: 'Something went wrong',
    detail: (requestId: string) =>
      `Please try again in a moment. If it happens again, report this number: ${requestId}`,
  },
};

export type Text = typeof en;
