/** An answer in the form that an operator typed. */
export interface AnswerDraft {
  readonly status: string;
  /** JSON. */
  readonly headers: string;
  readonly body: string;
}

/** The mistakes, by field. */
export type DraftFaults = { readonly [Field in keyof AnswerDraft]?: string };

/** An answer for the Admin API. */
export type ReadAnswer = NonNullable<ReturnType<typeof readDraft>['answer']>;

/** The answer for the Admin API, or its mistakes. */
export function readDraft({ status, headers: text, body }: AnswerDraft) {
  const headers = parse(text.trim() === '' ? '{}' : text);
  if ('fault' in headers) return { faults: { headers: `Not valid JSON: ${headers.fault}` } satisfies DraftFaults };
  if (!isTexts(headers.value))
    return { faults: { headers: 'Must be an object of texts, such as {"content-type": "application/json"}' } };
  const type = Object.entries(headers.value).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  if (type !== undefined && /[/+]json\b/i.test(type)) {
    const json = parse(body);
    if ('fault' in json) return { faults: { body: `Not valid JSON, although content-type says so: ${json.fault}` } };
  }
  return { answer: { status: Number(status), headers: headers.value, body } };
}

function parse(text: string): { readonly value: unknown } | { readonly fault: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: (error as SyntaxError).message };
  }
}

function isTexts(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === 'string');
}
