import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const SRC = resolve(import.meta.dirname, '../src');

/** The rooms that work with headgate. */
const HEADGATE = [
  ...['api', 'db', 'dashboard', 'journal', 'limits', 'wizard', 'observability', 'metric-sources'],
  ...['server', 'service', 'rooms'],
];

/** The files with SQL: the stores, and the database itself. */
const SQL = [
  ...[
    'applications/',
    'keys/',
    'scopes/',
    'domains/',
    'accounts/',
    'links/',
    'limits/',
    'people/',
    'journal/',
    'tracking/',
    'webhooks/',
    'jobs/job-table.ts',
    'db/',
  ],
  // What the mock provider has sent and drafted is its own.
  'providers/mock/mailbox.ts',
];

const OF_PEOPLE = 'people belong to an organization, which has several applications';

/** Methods of stores with a query that does not name `application_id`, each with its reason. */
const ACROSS_APPLICATIONS: Readonly<Record<string, string>> = {
  'accounts/accounts.ts findForOperator': 'for the operator, at the command line',
  'applications/applications.ts create': 'an application is not part of another one',
  'applications/applications.ts find': 'the id is the one of the application',
  'applications/applications.ts findIn': 'the id is the one of the application',
  'applications/applications.ts list': 'the applications of an organization',
  'people/invitations.ts #create': OF_PEOPLE,
  'people/invitations.ts accept': OF_PEOPLE,
  'people/invitations.ts deleteOld': OF_PEOPLE,
  'people/invitations.ts find': OF_PEOPLE,
  'people/invitations.ts list': OF_PEOPLE,
  'people/invitations.ts withdraw': OF_PEOPLE,
  'people/member-sessions.ts create': OF_PEOPLE,
  'people/member-sessions.ts deleteOld': OF_PEOPLE,
  'people/member-sessions.ts end': OF_PEOPLE,
  'people/member-sessions.ts endOwn': OF_PEOPLE,
  'people/member-sessions.ts endSessionsOf': OF_PEOPLE,
  'people/member-sessions.ts list': OF_PEOPLE,
  'people/member-sessions.ts resolve': OF_PEOPLE,
  'people/members.ts #change': OF_PEOPLE,
  'people/members.ts authenticate': OF_PEOPLE,
  'people/members.ts changePassword': OF_PEOPLE,
  'people/members.ts findWithHash': OF_PEOPLE,
  'people/members.ts list': OF_PEOPLE,
  'people/members.ts remove': OF_PEOPLE,
  'people/members.ts setRole': OF_PEOPLE,
  'people/organizations.ts find': OF_PEOPLE,
  'people/organizations.ts rename': OF_PEOPLE,
  'people/organizations.ts requireSecondFactor': OF_PEOPLE,
  'people/second-factors.ts #useRecoveryCode': OF_PEOPLE,
  'people/second-factors.ts #useStep': OF_PEOPLE,
  'people/second-factors.ts removeSecondFactor': OF_PEOPLE,
  'people/second-factors.ts renewRecoveryCodes': OF_PEOPLE,
  'people/second-factors.ts resetByOperator': OF_PEOPLE,
  'people/second-factors.ts setUp': OF_PEOPLE,
  'people/second-factors.ts turnOff': OF_PEOPLE,
  'people/organizations.ts lockOrganization': OF_PEOPLE,
  'people/organizations.ts holdRole': OF_PEOPLE,
  'people/audit-log.ts add': 'the row has it: see entryOf',
  'people/audit-log.ts deleteOld': OF_PEOPLE,
  'people/audit-log.ts list': OF_PEOPLE,
  'applications/applications.ts findOldest': 'for the operator, at the command line',
  'applications/applications.ts isEmpty': 'for the first start',
  'domains/domains.ts inUse': 'for the operator, at the command line',
  'domains/domains.ts isServed': 'a host belongs to one application, which the request does not know',
  'domains/domains.ts takeUnchecked': 'the daily check works for every application',
  'journal/instances.ts #beat': 'a process serves every application',
  'journal/instances.ts alive': 'a process serves every application',
  'journal/instances.ts close': 'a process serves every application',
  'journal/instances.ts #show': 'a process serves every application',
  'keys/key-uses.ts #update': 'the times of use of all keys are written together',
  'jobs/job-table.ts backlogs': 'for the operator, who sees numbers only',
  'journal/old-sends.ts #settledBefore': 'the retention is the same for every application',
  'journal/old-sends.ts deleteOld': 'the retention is the same for every application',
  'journal/old-sends.ts eraseContents': 'the retention is the same for every application',
  'journal/old-sends.ts forgetKeys': 'the sweeper works for every application',
  'journal/send-records.ts pending': 'for the operator, who sees numbers only',
  'journal/sends.ts takeWithoutIds': 'the sweeper works for every application',
  'journal/send-records.ts unsettled': 'the sweeper works for every application',
  'links/links.ts deleteOld': 'the retention is the same for every application',
  'links/links.ts resolve': 'the token of the link says which application it is',
  'links/wizard-sessions.ts changeCookie':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts close':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts create':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts failAttempt':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts replace':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts resolve':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts returnAttempt':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts save': 'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts setLanguage':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'links/wizard-sessions.ts takeAttempt':
    'the id of the session was found by its cookie, and the session belongs to one link',
  'providers/mock/mailbox.ts byId': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts byMessageId': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts deleteDraft': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts deliver': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts deliverDraft': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts draft': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts list': 'a mailbox outside, which knows its account only',
  'providers/mock/mailbox.ts saveDraft': 'a mailbox outside, which knows its account only',
  'webhooks/conversations.ts deleteOld': 'the retention is the same for every application',
  'webhooks/events.ts deleteOld': 'the retention is the same for every application',
};

/** What the files outside of security/ may use of the modules that connect, look up and listen. */
const WITHOUT_A_WAY_OUT = [
  'isIP',
  'isIPv4',
  'isIPv6',
  'BlockList',
  'createServer',
  'STATUS_CODES',
  'checkServerIdentity',
];

/** Files with a way out of their own, each with its reason. */
const OTHER_WAYS_OUT: Readonly<Record<string, string>> = {
  'cli/ask-health.ts fetch': 'the operator names the process',
  'db/database.ts pg': 'the operator names the server',
  'db/directory-lock.ts connect': 'the socket is in the data directory',
  'limits/redis.ts Redis': 'the operator names the server',
};

interface Import {
  readonly file: string;
  readonly specifier: string;
}

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name));
const read = (file: string): string => readFileSync(file, 'utf8');
const nameOf = (file: string): string => relative(SRC, file).replaceAll('\\', '/');
/** The first folder of the path, or the file if it is in no folder. */
const roomOf = (file: string): string => (nameOf(file).split('/')[0] ?? '').replace(/\.tsx?$/, '');

const imports: readonly Import[] = files.flatMap((file) =>
  ts.preProcessFile(read(file)).importedFiles.map(({ fileName }) => ({ file, specifier: fileName })),
);
const show = ({ file, specifier }: Import): string => `${nameOf(file)} imports ${specifier}`;
const isSqlFile = (file: string): boolean => SQL.some((place) => nameOf(file).startsWith(place));

describe('the sources of the service', () => {
  test('are read', () => {
    expect(imports.length).toBeGreaterThan(files.length);
  });

  test('import headgate only in the rooms that work with it', () => {
    const ours = imports.filter(({ specifier }) => /^headgate(\/|$)/.test(specifier));
    expect(ours.length).toBeGreaterThan(0);
    expect(ours.filter(({ file }) => !HEADGATE.includes(roomOf(file))).map(show)).toEqual([]);
  });

  test('connect to the outside by the egress only', () => {
    const found = files.filter((file) => roomOf(file) !== 'security').flatMap(waysOutOf);
    expect(found.sort()).toEqual(Object.keys(OTHER_WAYS_OUT));
  });

  test('have SQL only in stores', () => {
    const wrong = imports.filter(
      ({ file, specifier }) => /^(kysely|pg|@electric-sql\/pglite)(\/|$)/.test(specifier) && !isSqlFile(file),
    );
    expect(wrong.map(show)).toEqual([]);
    const builders = files.filter(
      (file) => !isSqlFile(file) && /\.(selectFrom|insertInto|updateTable|deleteFrom)\(/.test(read(file)),
    );
    expect(builders.map(nameOf)).toEqual([]);
  });

  test('domain uses nothing but Node: no clock, no input or output', () => {
    const domain = files.filter((file) => roomOf(file) === 'domain');
    expect(domain.filter((file) => /Date\.now\(|new Date\(\)|performance\.now\(|fetch\(/.test(read(file)))).toEqual([]);
    const wrong = imports.filter(
      ({ file, specifier }) =>
        roomOf(file) === 'domain' && /^node:(fs|net|http|https|dns|child_process|timers)/.test(specifier),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test('name the application in every query of a store, except in the methods listed here', () => {
    const without = files
      .filter((file) => isSqlFile(file) && roomOf(file) !== 'db')
      .flatMap(methodsWithQueries)
      .filter(({ text }) => !/application_id/.test(text))
      .map(({ name }) => name);
    expect([...without].sort()).toEqual(Object.keys(ACROSS_APPLICATIONS).sort());
  });
});

/** What a file uses that makes connections or asks name servers: imported values, and the global `fetch`. */
function waysOutOf(file: string): readonly string[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2023, true);
  const found: string[] = [];
  let hasOwnFetch = false;
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) found.push(...valuesOf(node));
    if (ts.isParameter(node) || ts.isVariableDeclaration(node) || ts.isBindingElement(node))
      hasOwnFetch ||= node.name.getText() === 'fetch';
    if (ts.isCallExpression(node) && /^(globalThis\.)?fetch$/.test(node.expression.getText())) found.push('fetch');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...new Set(found)]
    .filter((name) => name !== 'fetch' || !hasOwnFetch)
    .map((name) => `${nameOf(file)} ${name}`);
}

function valuesOf({ moduleSpecifier, importClause }: ts.ImportDeclaration): readonly string[] {
  const module = (moduleSpecifier as ts.StringLiteral).text;
  const connects = /^(node:(net|tls|https?|http2|dns|dgram)(\/promises)?|undici|socks|pg|ioredis|axios)$/.test(module);
  if (!connects || importClause === undefined || importClause.isTypeOnly) return [];
  const { name, namedBindings } = importClause;
  if (namedBindings === undefined || ts.isNamespaceImport(namedBindings)) return [name?.text ?? module];
  return namedBindings.elements
    .filter(({ isTypeOnly }) => !isTypeOnly)
    .map((element) => (element.propertyName ?? element.name).text)
    .filter((imported) => !WITHOUT_A_WAY_OUT.includes(imported));
}

/** The methods and functions of a file that contain a query. */
function methodsWithQueries(file: string): readonly { readonly name: string; readonly text: string }[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2023, true);
  const found: { name: string; text: string }[] = [];
  const visit = (node: ts.Node): void => {
    const isNamed = ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node);
    const text = isNamed ? node.getText() : '';
    if (isNamed && /\.(selectFrom|insertInto|updateTable|deleteFrom)\(/.test(text))
      found.push({ name: `${nameOf(file)} ${node.name?.getText()}`, text });
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}
