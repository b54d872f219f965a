import type { Attachment } from './mail.ts';

/** Names that are the same in a `Content-ID`, in a `cid:` URL, and in what mail programs make of both. */
const CONTENT_ID = /^[\w.+@-]+$/;
/** A name is at most 255 characters, of which each may be escaped. */
const REFERENCE = /cid:([\w.+@%-]{1,765})/g;
/** More than any email needs. The rest is not read, because the search blocks the process. */
const MAX_REFERENCES = 1_000;

/**
 * Makes inline parts of the files that an HTML body shows by their names: `<img src="cid:logo.png">`. If several files
 * have the name, the first one is meant.
 */
export function withContentIds(attachments: readonly Attachment[], html: string): readonly Attachment[] {
  if (attachments.length === 0) return attachments;
  const names = referencesIn(html);
  return attachments.map((attachment) => {
    const { filename } = attachment;
    return CONTENT_ID.test(filename) && names.delete(filename) ? { ...attachment, contentId: filename } : attachment;
  });
}

function referencesIn(html: string): Set<string> {
  const names = new Set<string>();
  let count = 0;
  for (const [, name = ''] of html.matchAll(REFERENCE)) {
    names.add(unescaped(name));
    count++;
    if (count === MAX_REFERENCES) break;
  }
  return names;
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
