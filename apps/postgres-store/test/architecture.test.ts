import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '../src');

test('src imports headgate by its published subpaths only, and node-postgres only as types', () => {
  const files = readdirSync(SRC).filter((file) => file.endsWith('.ts'));
  const imports = files.flatMap((file) =>
    [...readFileSync(join(SRC, file), 'utf8').matchAll(/^(?:import|export) (type )?.*?from '([^']+)'/gms)].map(
      ([, type = '', specifier]) => `${type}${specifier}`,
    ),
  );
  const packages = new Set(imports.filter((each) => !each.includes('./')));
  const may = [
    'headgate',
    'headgate/stores',
    'node:crypto',
    'node:fs',
    'type headgate',
    'type headgate/limits',
    'type headgate/stores',
    'type pg',
  ];
  expect(packages).toContain('headgate/stores');
  expect([...packages].filter((each) => !may.includes(each))).toEqual([]);
});
