import { COMPONENTS, type Fingerprint, TAG_LENGTH, VERSION } from './format.ts';

/** Most pieces that one message names. */
const MAX_NAMED = 3;

interface Tags {
  readonly total: string;
  readonly components: readonly string[];
  readonly kind: string;
  /** Two tags per piece of the body: one of its name, one of its content. */
  readonly entries: readonly { readonly name: string; readonly content: string }[];
}

/**
 * How the current request differs from the stored one, for the detail of a 409: `attachments[1] differs`. It names only
 * what the current client sent itself, so it reveals nothing of the stored request. If the account or a compared field
 * differs, it names only these, and not which one.
 *
 * @param stored `value` of the fingerprint that the key belongs to
 * @returns undefined if the requests are the same
 */
export function describeDifference(stored: string, current: Fingerprint): string | undefined {
  if (stored === current.value) return undefined;
  const [before, now] = [parse(stored), parse(current.value)];
  // The fingerprint is of another version, or was not made by this library.
  if (before === undefined || now === undefined) return 'the request differs';
  const differing = COMPONENTS.filter((_, i) => before.components[i] !== now.components[i]);
  // A caller that may not reach the stored request's account must not find out by guesses what else it was.
  if (differing.includes('account')) return callerDiffers(current.compares ?? []);
  const subjects = differing.filter((component) => component !== 'body').map((component) => `the ${component}`);
  if (!differing.includes('body')) return sentence(subjects.length > 0 ? subjects : ['the request']);
  const pieces = before.kind === now.kind ? differingPieces(before, now, current.labels) : [];
  if (pieces === undefined) {
    const fields = 'the body has other fields';
    return subjects.length === 0 ? fields : `${sentence(subjects)}, and ${fields}`;
  }
  return sentence([...subjects, ...(pieces.length > 0 ? pieces : ['the body'])]);
}

function callerDiffers(compares: readonly string[]): string {
  if (compares.length === 0) return 'the account differs';
  return `the account or a compared field (${compares.join(', ')}) differs`;
}

/** Labels of the pieces that differ; undefined if the names in the two bodies differ. */
function differingPieces(before: Tags, now: Tags, labels: readonly string[]): readonly string[] | undefined {
  const names = ({ entries }: Tags): string => entries.map(({ name }) => name).join();
  // The body contains no pieces, or too many for tags.
  if (before.entries.length === 0 || now.entries.length === 0) return [];
  if (names(before) !== names(now)) return undefined;
  return labels.filter((_, i) => before.entries[i]?.content !== now.entries[i]?.content);
}

function sentence(subjects: readonly string[]): string {
  const named = subjects.slice(0, MAX_NAMED);
  const more = subjects.length - named.length;
  const all = more > 0 ? [...named, `${more} more`] : named;
  const list = all.length > 1 ? `${all.slice(0, -1).join(', ')} and ${all.at(-1)}` : all.join();
  return `${list} ${all.length > 1 ? 'differ' : 'differs'}`;
}

function parse(value: string): Tags | undefined {
  const [version, total, head, entries, ...rest] = value.split('.');
  const length = COMPONENTS.length * TAG_LENGTH;
  if (version !== VERSION || total === undefined || head?.length !== length + 1 || rest.length > 0) return undefined;
  if (entries === undefined || entries.length % (2 * TAG_LENGTH) !== 0) return undefined;
  const tags = split(entries);
  return {
    total,
    components: split(head.slice(0, length)),
    kind: head.slice(length),
    entries: tags.filter((_, i) => i % 2 === 0).map((name, i) => ({ name, content: tags[2 * i + 1] as string })),
  };
}

function split(tags: string): readonly string[] {
  return tags.match(new RegExp(`.{${TAG_LENGTH}}`, 'g')) ?? [];
}
