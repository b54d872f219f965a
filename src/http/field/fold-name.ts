/** Folding does not change it. */
const PLAIN = /^[a-z0-9_]*$/;

/**
 * A name as the servers see it that are generous: they ignore case (Go, .NET), turn dots and blanks into underscores (PHP), read brackets as
 * structure (qs, Rails, PHP), or cut at a NUL. Two names that fold alike are one name to some server.
 */
export function foldName(name: string): string {
  if (PLAIN.test(name)) return name;
  return decodePercent(name)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^[\s[]+/, '')
    .replace(/[[\]\0].*$/s, '')
    .trim()
    .replace(/[\s.-]/g, '_');
}

function decodePercent(name: string): string {
  return name.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
