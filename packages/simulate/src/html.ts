import { shownName } from './shown.ts';

/** HTML that was made here, so it is not escaped once more. */
export class Html {
  constructor(readonly text: string) {}
}

/** HTML that needs no escaping, because it is not of the log. */
export const raw = (text: string): Html => new Html(text);

type Part = string | number | Html | readonly Html[] | undefined;

/** A template whose texts are names of hostile clients: each is escaped. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.map((text, i) => text + htmlOf(parts[i])).join(''));
}

function htmlOf(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map((each: Html) => each.text).join('');
  return escaped(shownName(String(part)));
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
