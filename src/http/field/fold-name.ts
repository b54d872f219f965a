/** Names that folding does not change. */
const PLAIN = /^[a-z0-9_]*$/;

/**
 * A field's name as the most lenient servers read it. They ignore case (Go, .NET), turn dots and spaces into
 * underscores (PHP), read brackets as structure (qs, Rails, PHP), or cut the name at a NUL. Two names with the same
 * folded form are the same name to some server.
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
