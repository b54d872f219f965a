// @ts-check
// A plug-in for a messenger that links accounts by a telephone number, a captcha and a code, or by a QR code.

/** The messenger's own interface. */
const API = process.env.MESSENGER_URL ?? 'https://messenger.example';

/** @type {import('communication-api/plugin').CreateProvider} */
export const createProvider = () => ({
  name: 'telegram',
  title: 'Messenger',
  supports: new Set(['messaging']),
  link: { begin: async () => ({ page: 'start' }), stepOf, submit },
});

/**
 * What a flow remembers between two pages. It must be JSON.
 * @typedef {{ page: 'start' } | { page: 'captcha' | 'code' | 'scan', session: string, picture?: string }} State
 */

/** The page of a state. @returns {import('communication-api/plugin').LinkStep} */
function stepOf(/** @type {any} */ state) {
  switch (/** @type {State} */ (state).page) {
    case 'captcha':
      return {
        kind: 'form',
        name: 'captcha',
        title: { en: 'What does the picture say?', de: 'Was steht auf dem Bild?' },
        image: { url: state.picture, description: { en: 'Distorted letters', de: 'Verzerrte Buchstaben' } },
        fields: [{ kind: 'text', name: 'letters', label: { en: 'Letters', de: 'Buchstaben' }, required: true }],
      };
    case 'code':
      return {
        kind: 'code',
        name: 'code',
        title: { en: 'Enter the code', de: 'Code eingeben' },
        intro: { en: 'The messenger has sent it to you.', de: 'Der Messenger hat ihn Ihnen gesendet.' },
      };
    case 'scan':
      return {
        kind: 'wait',
        name: 'scan',
        everySeconds: 3,
        title: { en: 'Scan the code', de: 'Code scannen' },
        intro: { en: 'Open the messenger on your phone.', de: 'Öffnen Sie den Messenger auf Ihrem Telefon.' },
        image: { url: state.picture, description: { en: 'QR code', de: 'QR-Code' } },
      };
    default:
      return {
        kind: 'form',
        name: 'start',
        title: { en: 'Link your messenger', de: 'Messenger verbinden' },
        fields: [
          {
            kind: 'text',
            name: 'number',
            label: { en: 'Telephone number', de: 'Telefonnummer' },
            hint: { en: 'Leave it empty to scan a QR code.', de: 'Ohne Nummer scannen Sie einen QR-Code.' },
            autocomplete: 'tel',
          },
        ],
      };
  }
}

/**
 * Takes what was entered on the page of a state.
 * @returns {Promise<import('communication-api/plugin').LinkAnswer<unknown>>}
 */
async function submit(
  /** @type {any} */ state,
  /** @type {import('communication-api/plugin').StepValues} */ values,
  /** @type {import('communication-api/plugin').LinkContext} */ { net, signal },
) {
  // context.net is the only way out: it goes through the account's proxy, and reaches no private address.
  const path = state.page === 'start' ? '/sessions' : `/sessions/${state.session}`;
  const answer = await net.fetch(API + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(values),
    signal,
  });
  const said = /** @type {any} */ (await answer.json());
  if (answer.status === 422) return { kind: 'invalid', faults: [{ field: said.field, message: WRONG }] };
  // Anything else that is thrown is shown as "The provider did not answer as expected".
  if (!answer.ok) throw new Error(`The messenger has answered ${answer.status}.`);
  if (said.user === undefined) return { kind: 'next', state: said };
  const { id, number, token } = said.user;
  return { kind: 'identified', account: { providerUserId: id, name: number, credentials: { token } } };
}

const WRONG = {
  en: 'This is not correct. Please try again.',
  de: 'Das stimmt nicht. Bitte versuchen Sie es noch einmal.',
};
