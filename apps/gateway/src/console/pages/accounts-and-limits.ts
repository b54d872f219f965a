/** Two pages in one file, because both have the editor of limits: apart they would be larger than together. */
export { AccountsPage } from './accounts.tsx';
export { LimitsPage } from './limits.tsx';
