import { parse, parseAllDocuments, stringify } from 'yaml';
import { textOf } from './deploy-files.ts';
import type { Manifest } from './typed-manifests.ts';

/** The default values of the chart. */
export const chartValues = (): Record<string, unknown> => parse(textOf('helm/values.yaml'));

/**
 * The objects of the chart, as `helm template RELEASE --values …` makes them. It knows only the functions that the chart
 * uses, and throws at any other.
 */
export function renderChart(values: object, release: string): Manifest[] {
  const text = textOf('helm/templates/headgate.yaml').replace(
    /\s*\{\{- (\w+) (\S+) \| nindent (\d+) \}\}|\{\{ (\S+)( \| quote)? \}\}/g,
    (_all, write: string | undefined, block: string, indent: string, path: string, quote: string | undefined) => {
      if (write !== undefined) return `\n${indented(written(write, lookUp(block)), Number(indent))}`;
      const value = lookUp(path);
      if (typeof value === 'object') throw new Error(`${path} is an object`);
      return quote === undefined ? String(value) : JSON.stringify(String(value));
    },
  );
  if (text.includes('{{')) throw new Error(`a template is left: ${text.slice(text.indexOf('{{'), 80)}`);
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as Manifest;
  });

  function lookUp(path: string): unknown {
    const root = { Values: values, Release: { Name: release } };
    const names = path.split('.').slice(1);
    const value = names.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], root);
    if (value === undefined) throw new Error(`${path} has no value`);
    return value;
  }
}

function written(name: string, value: unknown): string {
  if (name === 'toPrettyJson') return JSON.stringify(value, null, 2);
  if (name === 'toYaml') return stringify(value).trimEnd();
  throw new Error(`unknown function ${name}`);
}

function indented(text: string, by: number): string {
  return text.replaceAll(/^/gm, ' '.repeat(by));
}
