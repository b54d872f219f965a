/** Two pages in one file, because both use the editor of limits: two files would be larger than one. */
export { AccountsPage } from './accounts.tsx';
export { LimitsPage } from './limits.tsx';
