import type { Text } from './en.ts';

const seconds = (count: number): string => (count === 1 ? '1 Sekunde' : `${count} Sekunden`);

/** The wizard in German. */
export const de: Text = {
  languageName: 'Deutsch',
  direction: 'ltr',
  development: 'Testumgebung. Verbinden Sie nur Konten für Tests.',
  purpose: (application) => `${application} bittet Sie, ein Konto zu verbinden.`,
  skip: 'Zum Inhalt springen',
  languages: 'Sprache',
  errorPrefix: 'Fehler: ',
  submit: 'Weiter',
  sending: 'Einen Moment…',
  back: 'Anderen Anbieter wählen',
  restart: 'Von vorn beginnen',
  cancel: (application) => `Abbrechen und zurück zu ${application}`,
  returnTo: (application) => `Zurück zu ${application}`,
  optional: 'freiwillig',
  choose: {
    title: 'Wählen Sie Ihren Anbieter',
    intro: (application) => `Welches Konto möchten Sie mit ${application} nutzen?`,
    list: 'Anbieter',
    search: 'Anbieter suchen',
    searchSubmit: 'Suchen',
    none: 'Kein Anbieter hat diesen Namen.',
  },
  faults: {
    summary: 'Bitte prüfen Sie Ihre Eingaben',
    general: 'Das hat nicht geklappt',
    required: 'Füllen Sie dieses Feld aus.',
    email: 'Geben Sie eine E-Mail-Adresse ein, zum Beispiel name@example.com.',
    number: 'Geben Sie eine ganze Zahl innerhalb der Grenzen ein.',
    choice: 'Wählen Sie eine der Möglichkeiten.',
    tooLong: 'Das ist zu lang.',
    proxyHost: 'Geben Sie einen Hostnamen oder eine Adresse ohne Protokoll ein.',
    proxyPort: 'Geben Sie einen Port von 1 bis 65535 ein.',
    provider: 'Wählen Sie einen der Anbieter.',
    denied: 'Sie haben den Zugriff nicht erlaubt. Ohne ihn kann das Konto nicht verbunden werden.',
    stale: 'Diese Anmeldung wurde schon verwendet oder neu begonnen. Bitte melden Sie sich noch einmal an.',
    failed: 'Der Anbieter hat nicht wie erwartet geantwortet. Bitte versuchen Sie es noch einmal.',
    paused: (count) =>
      `Das waren zu viele Versuche. Sie können es in ${count === 1 ? 'einer Sekunde' : `${count} Sekunden`} wieder versuchen.`,
  },
  code: 'Code',
  wait: 'Wir warten auf den Anbieter. Diese Seite geht von selbst weiter.',
  waitSubmit: 'Jetzt prüfen',
  away: (host) => `Sie gehen weiter zu ${host} und kommen danach hierher zurück.`,
  range: (min, max) => `Von ${min} bis ${max}.`,
  proxy: {
    title: 'Eigenen Proxy verwenden',
    intro: 'Verbindungen zum Anbieter laufen über diesen Proxy. Ohne Host wird kein eigener Proxy verwendet.',
    protocol: 'Protokoll',
    host: 'Host',
    port: 'Port',
    username: 'Benutzername',
    password: 'Passwort',
    passwordKept: 'Lassen Sie das leer, um das eingegebene Passwort zu behalten.',
  },
  country: {
    label: 'Land der Verbindung',
    hint: 'Wählen Sie das Land, in dem Sie dieses Konto sonst nutzen.',
    automatic: 'Automatisch wählen',
  },
  wrongAccount: {
    title: 'Das ist ein anderes Konto',
    detail: (expected, other) =>
      `Sie haben sich bei ${other} angemeldet. Dieser Link ist für ${expected}. Bitte melden Sie sich dort an.`,
    retry: 'Noch einmal versuchen',
  },
  sync: {
    title: 'Ihr Konto wird vorbereitet',
    intro: (account) => `${account} ist verbunden. Wir laden die Daten zum ersten Mal.`,
    progress: 'Fortschritt des ersten Abgleichs',
    percent: (percent) => `${percent} fertig`,
    done: 'Fertig. Sie werden zurückgeleitet.',
    leave: 'Sie müssen nicht warten. Der Rest geschieht ohne Sie, und Sie können dieses Fenster schließen.',
  },
  linked: {
    title: 'Ihr Konto ist verbunden',
    detail: (application) => `Sie können dieses Fenster schließen oder zu ${application} zurückkehren.`,
  },
  cancelled: {
    title: 'Sie haben abgebrochen',
    detail: (application) => `Es wurde kein Konto verbunden. Beginnen Sie bei ${application} von vorn.`,
  },
  unknownLink: {
    title: 'Diesen Link gibt es nicht',
    detail:
      'Prüfen Sie, ob die Adresse vollständig ist, oder fordern Sie dort, wo Sie ihn gefunden haben, einen neuen an.',
  },
  expired: {
    title: 'Dieser Link ist abgelaufen',
    detail: (application) => `Gehen Sie zurück zu ${application} und beginnen Sie von vorn.`,
  },
  used: {
    title: 'Dieser Link wurde schon benutzt',
    detail: (application) =>
      `Ein Link gilt einmal. Um ein weiteres Konto zu verbinden, gehen Sie zurück zu ${application} und beginnen Sie von vorn.`,
  },
  removed: {
    title: 'Dieses Konto gibt es nicht mehr',
    detail: (application) =>
      `Das Konto zu diesem Link wurde entfernt. Gehen Sie zurück zu ${application} und beginnen Sie von vorn.`,
  },
  unavailable: {
    title: 'Dieser Anbieter ist nicht verfügbar',
    detail: (application) => `Gehen Sie zurück zu ${application} und beginnen Sie von vorn.`,
  },
  forged: {
    title: 'Wir konnten dieses Formular nicht prüfen',
    detail: 'Die Seite war zu lange offen oder wurde nicht von hier gesendet. Öffnen Sie Ihren Link noch einmal.',
  },
  unreachable: {
    title: 'Der Anbieter ist nicht erreichbar',
    detail: 'Er hat nicht wie erwartet geantwortet. Bitte versuchen Sie es gleich noch einmal.',
    retry: 'Noch einmal versuchen',
  },
  strayCallback: {
    title: 'Diese Anmeldung kann nicht fortgesetzt werden',
    detail: 'Sie wurde in einem anderen Browser begonnen, oder es ist zu lange her. Öffnen Sie Ihren Link noch einmal.',
  },
  cookies: {
    title: 'Bitte erlauben Sie Cookies',
    detail:
      'Diese Seite braucht ein Cookie, bis Ihr Konto verbunden ist. Erlauben Sie Cookies für diese Seite und versuchen Sie es noch einmal.',
    retry: 'Noch einmal versuchen',
  },
  tooMany: {
    title: 'Zu viele Anfragen',
    detail: (count) => `Bitte warten Sie ${seconds(count)}, gehen Sie dann zurück und versuchen Sie es noch einmal.`,
  },
  wrongHost: {
    title: 'Unter dieser Adresse gibt es keine Anmeldung',
    detail: 'Der Server kennt den Hostnamen dieser Adresse nicht. Prüfen Sie, ob die Adresse stimmt.',
  },
  notFound: { title: 'Diese Seite gibt es nicht', detail: 'Öffnen Sie Ihren Link noch einmal.' },
  invalid: {
    title: 'Wir haben diese Anfrage nicht verstanden',
    detail: 'Gehen Sie zurück und versuchen Sie es noch einmal.',
  },
  failed: {
    title: 'Etwas ist schiefgegangen',
    detail: (requestId) =>
      `Bitte versuchen Sie es gleich noch einmal. Wenn es wieder geschieht, nennen Sie diese Nummer: ${requestId}`,
  },
};
