/** The languages of the wizard. The first is used if the browser asks for other languages. */
export const LANGUAGES = ['en', 'de'] as const;

export type Language = (typeof LANGUAGES)[number];

/** A text in every language. */
export type Words = Readonly<Record<Language, string>>;

export const isLanguage = (text: unknown): text is Language => (LANGUAGES as readonly unknown[]).includes(text);

/** The best language for an `Accept-Language` field (RFC 9110): the highest weight, then the first. */
export function languageOf(acceptLanguage: string | undefined): Language {
  const wanted = (acceptLanguage ?? '')
    .split(',')
    .map((entry) => {
      const [range = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
      return { language: range.split('-')[0] ?? '', weight: Number(weight) };
    })
    .filter(({ language, weight }) => isLanguage(language) && weight > 0)
    .sort((a, b) => b.weight - a.weight);
  const [best] = wanted;
  return best !== undefined && isLanguage(best.language) ? best.language : LANGUAGES[0];
}
