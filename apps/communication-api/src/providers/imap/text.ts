import type { Words } from '../../domain/language.ts';

/** The texts of one server in the form. */
const serverTexts = (protocol: 'IMAP' | 'SMTP', portHint: Words) => ({
  host: { en: `${protocol} server`, de: `${protocol}-Server` },
  port: { en: `${protocol} port`, de: `${protocol}-Port` },
  portHint,
  encryption: { en: `${protocol} encryption`, de: `${protocol}-Verschlüsselung` },
  user: { en: `${protocol} user name`, de: `${protocol}-Benutzername` },
});

/** The texts of a server that does not work. They say the same for each reason why no connection was made. */
const faultTexts = (protocol: 'IMAP' | 'SMTP') => ({
  unreachable: {
    en: `No ${protocol} server with a valid certificate answers at this host, port and encryption.`,
    de: `Unter diesem Namen, mit diesem Port und dieser Verschlüsselung antwortet kein ${protocol}-Server mit gültigem Zertifikat.`,
  },
  port: { en: 'Check the port, too.', de: 'Bitte auch den Port prüfen.' },
  credentials: {
    en: `The ${protocol} server refuses the user name or the password.`,
    de: `Der ${protocol}-Server lehnt den Benutzernamen oder das Passwort ab.`,
  },
  unavailable: {
    en: `The ${protocol} server cannot check the password now. Try again in a few minutes.`,
    de: `Der ${protocol}-Server kann das Passwort gerade nicht prüfen. Bitte in einigen Minuten erneut versuchen.`,
  },
});

/** The texts of the pages for imap. */
export const TEXT = {
  login: {
    title: { en: 'Link your mailbox', de: 'Postfach verbinden' },
    intro: {
      en: 'The servers of your mailbox are found by its address, if they can be.',
      de: 'Die Server Ihres Postfachs werden anhand der Adresse gesucht.',
    },
    address: { en: 'Email address', de: 'E-Mail-Adresse' },
    password: { en: 'Password', de: 'Passwort' },
    passwordHint: {
      en: 'Some mail hosts want an app password here. You make one in their security settings.',
      de: 'Manche Anbieter verlangen hier ein App-Passwort. Sie erzeugen es in deren Sicherheitseinstellungen.',
    },
    advanced: { en: 'Enter the servers myself', de: 'Server selbst eingeben' },
  },
  servers: {
    title: { en: 'The servers of your mailbox', de: 'Die Server Ihres Postfachs' },
    intro: {
      wanted: (address: string) => ({
        en: `Enter the servers of ${address}. Your mail host knows them.`,
        de: `Geben Sie die Server von ${address} ein. Ihr Anbieter nennt sie Ihnen.`,
      }),
      unknown: (address: string) => ({
        en: `The servers of ${address} were not found. The values below are usual, but may be wrong. Your mail host knows the right ones.`,
        de: `Die Server von ${address} wurden nicht gefunden. Die Vorschläge sind üblich, können aber falsch sein. Ihr Anbieter nennt Ihnen die richtigen.`,
      }),
      confirm: (address: string) => ({
        en: `These servers were found for ${address}. They belong to another domain. Continue if you know them.`,
        de: `Diese Server wurden für ${address} gefunden. Sie gehören zu einer anderen Domain. Fahren Sie fort, wenn Sie sie kennen.`,
      }),
      failed: (address: string) => ({
        en: `The mailbox ${address} could not be linked with these servers.`,
        de: `Das Postfach ${address} konnte mit diesen Servern nicht verbunden werden.`,
      }),
      'app-password': (address: string) => ({
        en: `Enter an app password for ${address}. You make one at myaccount.google.com/apppasswords.`,
        de: `Geben Sie ein App-Passwort für ${address} ein. Sie erzeugen es unter myaccount.google.com/apppasswords.`,
      }),
    },
    imap: serverTexts('IMAP', { en: 'Usually 993, or 143 with STARTTLS.', de: 'Meist 993, mit STARTTLS 143.' }),
    smtp: serverTexts('SMTP', { en: 'Usually 465, or 587 with STARTTLS.', de: 'Meist 465, mit STARTTLS 587.' }),
    encryptions: {
      tls: { en: 'TLS', de: 'TLS' },
      starttls: { en: 'STARTTLS', de: 'STARTTLS' },
      none: { en: 'None: others can read the password', de: 'Keine: Andere können das Passwort mitlesen' },
    },
    passwordKept: {
      en: 'Leave it empty to use the password that you entered.',
      de: 'Leer lassen, um das schon eingegebene Passwort zu verwenden.',
    },
  },
  fault: {
    imap: faultTexts('IMAP'),
    smtp: faultTexts('SMTP'),
    login: {
      en: 'The mail server refuses the address or the password.',
      de: 'Der Mailserver lehnt die Adresse oder das Passwort ab.',
    },
    unavailable: {
      en: 'The mail server cannot check the password now. Try again in a few minutes.',
      de: 'Der Mailserver kann das Passwort gerade nicht prüfen. Bitte in einigen Minuten erneut versuchen.',
    },
    proxy: {
      en: 'The proxy refuses its user name or its password.',
      de: 'Der Proxy lehnt seinen Benutzernamen oder sein Passwort ab.',
    },
  },
  signIn: {
    way: { en: 'How do you want to continue?', de: 'Wie möchten Sie fortfahren?' },
    login: { en: 'Use another address', de: 'Eine andere Adresse verwenden' },
    google: {
      title: { en: 'This mailbox is at Google', de: 'Dieses Postfach ist bei Google' },
      offered: {
        en: 'Google does not accept the password of the account here. Sign in at Google, or use an app password.',
        de: 'Google nimmt hier das Passwort des Kontos nicht an. Melden Sie sich bei Google an, oder verwenden Sie ein App-Passwort.',
      },
      notOffered: {
        en: 'Google does not accept the password of the account here, only an app password.',
        de: 'Google nimmt hier das Passwort des Kontos nicht an, nur ein App-Passwort.',
      },
      signIn: { en: 'Sign in at Google', de: 'Bei Google anmelden' },
      servers: { en: 'Use an app password', de: 'Ein App-Passwort verwenden' },
    },
    outlook: {
      title: { en: 'This mailbox is at Microsoft', de: 'Dieses Postfach ist bei Microsoft' },
      offered: {
        en: 'Microsoft does not accept passwords here. Sign in at Microsoft.',
        de: 'Microsoft nimmt hier keine Passwörter an. Melden Sie sich bei Microsoft an.',
      },
      notOffered: {
        en: 'Microsoft does not accept passwords here. Go back to the application and link the mailbox with Microsoft.',
        de: 'Microsoft nimmt hier keine Passwörter an. Kehren Sie zur Anwendung zurück und verbinden Sie das Postfach über Microsoft.',
      },
      signIn: { en: 'Sign in at Microsoft', de: 'Bei Microsoft anmelden' },
      servers: { en: 'Enter the mail servers of my organisation', de: 'Mailserver meiner Organisation eingeben' },
    },
  },
} as const satisfies Record<string, unknown>;
