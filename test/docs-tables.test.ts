import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn, namesOf, plain, ROOT, read, rowsOf } from 'headgate-testbed/docs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { createIdempotency } from '../src/idempotency/idempotency.ts';
import { createMemoryClaimStore } from '../src/stores/memory/claims.ts';

type Declaration = ts.InterfaceDeclaration | ts.ClassDeclaration | ts.TypeAliasDeclaration;

/** What the source declares, by name. */
const declarations = new Map<string, Declaration>();
const literalsOfType = new Map<string, string[]>();
for (const file of filesIn('src', '.ts')) {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2023);
  const literals: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
      const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
      if (isExported && node.name !== undefined && !declarations.has(node.name.text))
        declarations.set(node.name.text, node);
    }
    if (ts.isPropertySignature(node) && nameOf(node.name) === 'type' && node.type !== undefined)
      literals.push(...textsOf(node.type));
    ts.forEachChild(node, visit);
  };
  visit(source);
  literalsOfType.set(file, literals);
}

function nameOf(name: ts.PropertyName): string | undefined {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isNumericLiteral(name) ? name.text : undefined;
}

/** Texts of a union of literals. */
function textsOf(type: ts.TypeNode): string[] {
  if (ts.isUnionTypeNode(type)) return type.types.flatMap(textsOf);
  return ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal) ? [type.literal.text] : [];
}

/** Names of the public members of an interface, a class, or a type made of one. */
function membersOf(name: string): string[] {
  const declaration = declarations.get(name);
  if (declaration === undefined) throw new Error(`the source exports no type ${name}`);
  if (ts.isTypeAliasDeclaration(declaration)) return membersOfType(declaration.type);
  const own = [...declaration.members].flatMap(({ name: member }) => {
    const text = member && ts.isIdentifier(member) ? member.text : undefined;
    return text === undefined ? [] : [text];
  });
  const parents = declaration.heritageClauses?.flatMap(({ types }) => [...types]) ?? [];
  return [...new Set([...own, ...parents.flatMap((type) => membersOfNamed(type.expression, type.typeArguments))])];
}

function membersOfType(type: ts.TypeNode): string[] {
  if (ts.isTypeReferenceNode(type)) return membersOfNamed(type.typeName, type.typeArguments);
  const of = ts.isMappedTypeNode(type) ? type.typeParameter.constraint : undefined;
  return of && ts.isTypeOperatorNode(of) ? membersOfType(of.type) : [];
}

function membersOfNamed(name: ts.Node, [of, picked]: readonly ts.TypeNode[] = []): string[] {
  if (!ts.isIdentifier(name)) return [];
  if (name.text === 'Partial' && of !== undefined) return membersOfType(of);
  return name.text === 'Pick' && picked !== undefined ? textsOf(picked) : membersOf(name.text);
}

describe('tables in the docs say what the code has', () => {
  it.each([
    ['docs/reference.md', 'option of createLimiter', 'LimiterOptions'],
    ['docs/reference.md', 'method of a limiter', 'Limiter'],
    ['docs/reference.md', 'field of Decision', 'Decision'],
    ['docs/reference.md', 'field of WindowStatus', 'WindowStatus'],
    ['docs/reference.md', 'option of createJobWorker', 'JobWorkerOptions'],
    ['docs/reference.md', 'option of acquire', 'AcquireOptions'],
    ['docs/reference.md', 'method of a worker', 'JobWorker'],
    ['docs/reference.md', 'option of createGate', 'GateOptions'],
    ['docs/reference.md', 'option of createMemoryStore', 'MemoryStoreOptions'],
    ['docs/leases.md', 'option of createLeases', 'LeaseOptions'],
    ['docs/leases.md', 'field of LeaseStats', 'LeaseStats'],
    ['docs/answers.md', 'field of the context', 'AnswerContext'],
    ['docs/adapters/README.md', 'option of one route', 'RouteOptions'],
    ['docs/adapters/README.md', 'option of idempotentRequest', 'IdempotentRequestOptions'],
    ['docs/idempotency.md', 'setting', 'ClaimSettings'],
    ['docs/idempotency.md', 'option of createMemoryClaimStore', 'MemoryClaimStoreOptions'],
    ['docs/idempotency-clients.md', 'option of fetchWithRetry', 'RetryOptions'],
    ['docs/redis.md', 'option of createRedisStore', 'RedisStoreOptions'],
    ['docs/redis.md', 'field of stats()', 'RedisStoreStats'],
    ['docs/redis.md', 'option of createRedisClaimStore', 'RedisClaimStoreOptions'],
    ['docs/client-ip.md', 'option of headgate({ perAddress })', 'AddressLimits'],
    ['docs/client-ip.md', 'option of createClientIp', 'ClientIpOptions'],
    ['docs/opentelemetry.md', 'option of instrument', 'InstrumentOptions'],
    ['docs/write-a-store.md', 'method of LimitStore', 'LimitStore'],
    ['docs/write-a-store.md', 'method of AdjustmentStore', 'AdjustmentStore'],
    ['docs/postgres.md', 'option of createPostgresStore', 'PostgresStoreOptions'],
    ['docs/http.md', 'field of an error object', 'ProblemObject'],
  ])('%s, "%s": %s', (page, head, type) => {
    expect(namesOf(rowsOf(page, head)).sort()).toEqual(membersOf(type).sort());
  });

  it('options of createIdempotency beside its settings', () => {
    const settings = membersOf('ClaimSettings');
    const others = membersOf('IdempotencyOptions').filter((name) => !settings.includes(name));
    expect(namesOf(rowsOf('docs/idempotency.md', 'option of createIdempotency, beside the settings')).sort()).toEqual(
      others.sort(),
    );
  });

  it('options of the Fastify plugin beside those of one route', () => {
    const others = membersOf('FastifyGateOptions').filter((name) => !membersOf('RouteOptions').includes(name));
    expect(namesOf(rowsOf('docs/adapters/fastify.md', 'option of the plugin')).sort()).toEqual(others.sort());
  });

  it('defaults of the settings', async () => {
    const idempotency = createIdempotency({ store: createMemoryClaimStore() });
    const listed = rowsOf('docs/idempotency.md', 'setting').map(([name = '', _unit, value = '']) => [
      plain(name),
      value.replace(/[`',]/g, ''),
    ]);
    expect(Object.fromEntries(listed)).toEqual(
      Object.fromEntries(Object.entries(idempotency.settings).map(([name, value]) => [name, String(value)])),
    );
    await idempotency.close();
  });

  it.each([
    ['docs/reference.md', 'src/gate/events.ts'],
    ['docs/idempotency.md', 'src/idempotency/events.ts'],
  ])('%s has the types of events in %s', (page, file) => {
    expect(namesOf(rowsOf(page, 'event type')).sort()).toEqual([...new Set(literalsOfType.get(file))].sort());
  });

  it('docs/misuse.md has a section per code', () => {
    const codes = textsOf((declarations.get('MisuseCode') as ts.TypeAliasDeclaration).type);
    const sections = [...read('docs/misuse.md').matchAll(/^## (.*)$/gm)].map(([, title]) => title);
    expect(codes.length).toBeGreaterThan(0);
    expect(sections.sort()).toEqual(codes.sort());
  });

  it('errors over HTTP, by status', () => {
    const byStatus = declarations.get('ErrorTypesByStatus') as ts.InterfaceDeclaration;
    const produced = byStatus.members.flatMap((member) =>
      ts.isPropertySignature(member) && member.type !== undefined
        ? textsOf(member.type).map((type) => `${nameOf(member.name)} ${type}`)
        : [],
    );
    const listed = rowsOf('docs/errors.md', 'status').map(([status, type = '']) => `${status} ${plain(type)}`);
    expect(listed.sort()).toEqual(produced.sort());
  });

  it('codes of errors', () => {
    const codes = declarations.get('HeadgateErrorCode') as ts.TypeAliasDeclaration;
    expect(namesOf(rowsOf('docs/errors.md', 'code')).sort()).toEqual(textsOf(codes.type).sort());
  });
});

describe('adapters in the docs', () => {
  const adapters = readdirSync(join(ROOT, 'src/adapters'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replace('.ts', ''));

  it.each(['README.md', 'docs/adapters/README.md'])('%s lists all of them', (page) => {
    const rows = rowsOf(page, 'framework');
    expect(rows.map(([, subpath = '']) => plain(subpath)).sort()).toEqual(
      adapters.map((name) => `headgate/${name}`).sort(),
    );
  });

  it.each(adapters)('the table of functions has what headgate/%s exports', async (name) => {
    const exported = Object.keys(await import(`../src/adapters/${name}.ts`));
    const rows = rowsOf('docs/adapters/README.md', 'export').filter(([, subpaths = '']) => {
      const isNamed = plain(subpaths).split(/[ ,]+/).includes(`/${name}`);
      return /^all/.test(subpaths) ? !isNamed : isNamed;
    });
    expect(namesOf(rows).sort()).toEqual(exported.sort());
  });
});
