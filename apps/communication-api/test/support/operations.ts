import type { ApiDocument, ApiOperation, ApiParameter } from '../../src/api/document.ts';

/** One operation of the document. */
export interface Operation {
  readonly method: string;
  /** With placeholders, such as `/v2/emails/{tracking_id}`. */
  readonly path: string;
  readonly operation: ApiOperation;
}

export const operationsOf = ({ paths }: ApiDocument): readonly Operation[] =>
  Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

/** A path with a value for each placeholder. */
export const pathWith = ({ path }: Operation, value: string): string => path.replace(/\{[^}]+\}/g, value);

export const parametersIn = ({ operation }: Operation, place: ApiParameter['in']): readonly ApiParameter[] =>
  (operation.parameters ?? []).filter((parameter) => parameter.in === place);
