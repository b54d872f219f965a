/** Figures from the database about the work of all processes together. */
export interface DatabaseFigures {
  readonly journal: readonly { readonly state: string; readonly sends: number; readonly oldestSeconds: number }[];
  readonly jobs: readonly { readonly kind: string; readonly jobs: number; readonly overdueSeconds: number }[];
  readonly processes: readonly { readonly role: string; readonly processes: number }[];
}
