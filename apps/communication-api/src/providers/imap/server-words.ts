/** The fields that the libraries for mail add to their errors. */
interface LibraryError extends Error {
  readonly code?: unknown;
  readonly command?: unknown;
  readonly responseCode?: unknown;
  readonly responseStatus?: unknown;
}

/** The fields of these errors that contain the server's words. nodemailer also adds them to the message. */
const WORDS = ['response', 'responseText', 'reason', 'parserContext'] as const;

/** An error of a mail library for the log, without the server's words: a server may repeat the password. */
export function withoutServerWords(error: unknown): unknown {
  if (!(error instanceof Error) || !WORDS.some((name) => name in error)) return error;
  const { code, command, responseCode, responseStatus } = error as LibraryError;
  const known = [code, command, responseCode, responseStatus].filter((each) => each !== undefined);
  return new Error(`The mail server answered: ${known.join(' ')}`);
}

/** Whether a text repeats a password: as it is, or in the base64 of a login, in which it is not the first word. */
export function repeats(text: string, password: string): boolean {
  const lower = text.toLowerCase();
  return lower.includes(password.toLowerCase()) || encodedForms(password).some((form) => text.includes(form));
}

/** The base64 of a text behind 0, 1 or 2 other bytes, without the characters that depend on its neighbours. */
const encodedForms = (text: string): readonly string[] =>
  [0, 2, 3].map((start, before) => {
    const bytes = Buffer.from('\0'.repeat(before) + text);
    return bytes.toString('base64').slice(start, Math.floor((bytes.length * 8) / 6));
  });
