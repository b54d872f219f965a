import { computed, signal } from '@preact/signals';

/** The console's place: the parts of `#/accounts/acc_1?route=…`. */
export interface Route {
  /** `accounts`; empty: the overview. */
  readonly page: string;
  /** `acc_1` */
  readonly name: string | undefined;
  readonly query: URLSearchParams;
}

const TOKEN = /^#token=(.+)$/;

/**
 * The token of a link such as `…/#token=…`. It is removed from the address, because others may see the address, and a
 * token is no page's name.
 */
export const linkedToken = takeToken();

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  // A link with a token, in a tab that already shows the console.
  if (TOKEN.test(location.hash)) location.reload();
  else hash.value = location.hash;
});

export const route = computed<Route>(() => {
  const [path = '', query] = hash.value.replace(/^#\/?/, '').split('?', 2);
  const [page = '', name] = path.split('/', 2).map(decoded);
  return { page, name: name || undefined, query: new URLSearchParams(query) };
});

/** The address of a page. Names may contain any characters. */
export function href(page: string, name?: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
  // Half a surrogate pair cannot be encoded. URLSearchParams replaces it too.
  const path = name === undefined ? page : `${page}/${encodeURIComponent(name.replace(/\p{Surrogate}/gu, '\ufffd'))}`;
  return `#/${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`;
}

export function goTo(address: string): void {
  location.hash = address;
}

/** Shows another address in place of the current one: Back does not return to it. */
export function replaceWith(address: string): void {
  location.replace(address);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function takeToken(): string | undefined {
  const found = TOKEN.exec(location.hash)?.[1];
  if (found === undefined) return undefined;
  history.replaceState(null, '', location.pathname + location.search);
  return decoded(found);
}
