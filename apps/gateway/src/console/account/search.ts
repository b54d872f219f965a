import { href, type Route } from '../route.ts';

/** The page that lists accounts, with the focus on its search. */
export const ACCOUNT_SEARCH = href('accounts', undefined, { search: '1' });

export function isAccountSearch({ page, name }: Route): boolean {
  return page === 'accounts' && name === undefined;
}

export function focusAccountSearch(): void {
  document.querySelector<HTMLInputElement>('main input[type=search]')?.focus();
}
