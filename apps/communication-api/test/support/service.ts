import { createHash, randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, expect, inject } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { rootSecret } from '../../src/db/root-secret.ts';
import type { Environment, Role } from '../../src/domain/key-token.ts';
import type { MasterKey } from '../../src/security/envelope.ts';
import { typedSecret } from '../../src/security/totp.ts';
import { createService, type Service, type ServiceParts } from '../../src/service.ts';
import { Contract } from './contract.ts';
import { noteDeclared, noteSeen } from './contract-coverage.ts';
import { dumpDatabase } from './database-dump.ts';
import { type DatabaseKind, type OpenDatabase, openTestDatabase } from './databases.ts';
import { watchExchanges } from './exchanges.ts';
import { madeSecrets } from './secret.ts';
import { SecretWatch } from './secret-watch.ts';

const YEAR_MS = 31_536_000_000;

/** Tests ask no name server outside. */
const NO_RECORDS = { resolveCname: async () => [], resolveTxt: async () => [] };

/** A running service for a test file, with a new database. */
export interface TestService extends Service {
  readonly db: Database;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /**
   * The differences between the answers until now and the OpenAPI document. After the test file, there must be none.
   */
  contractFaults(): readonly string[];
  /** Everything that was logged, from level debug on. */
  logged(): string;
  /** A new application with a service key, and a way to make other keys. */
  application(environment?: Environment): Promise<TestApplication>;
}

export interface TestApplication {
  readonly id: string;
  readonly token: string;
  key(role: Role, scopeId?: string): Promise<string>;
}

/**
 * Starts a service. It ends after the test file, which fails if an answer differed from the OpenAPI document, or if a
 * secret was found where it must not be.
 * @param parts replace the parts of the running service. `kind` is the database: by default the database of
 * DATABASE_URL if it is given, else of the variable `DB`, else PGlite in memory
 */
export async function startService(
  environment: Readonly<Record<string, string>> = {},
  {
    kind,
    ...parts
  }: Pick<ServiceParts, 'clock' | 'pool' | 'providers' | 'resolver'> & {
    readonly kind?: DatabaseKind | undefined;
  } = {},
): Promise<TestService> {
  const given = environment.DATABASE_URL;
  // Services on one database share their master key.
  const key = given === undefined ? randomBytes(32) : createHash('sha256').update(given).digest();
  const { db, url: databaseUrl, close } = given === undefined ? await openTestDatabase(kind) : await openGiven(given);
  const config = readConfig({
    SECRET_KEYS: `k1:${key.toString('base64')}`,
    PORT: '0',
    // The servers of tests listen on 127.0.0.1.
    EGRESS_POLICY: 'off',
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    ...environment,
  });
  const lines: string[] = [];
  const masterKeys = config.SECRET_KEYS ?? [];
  const service = await createService({
    config,
    db,
    masterKeys,
    // Without the token filter that the log of a process uses: no token should reach it.
    log: pino({ level: 'debug' }, { write: (line) => void lines.push(line) }),
    resolver: NO_RECORDS,
    ...parts,
  });
  await service.app.listen({ port: config.PORT, host: '127.0.0.1' });
  const contractFaults = watchContract(service);
  const checkSecrets = watchSecrets(service, [...masterKeys, { id: 'root', key: await rootSecret(db, masterKeys) }], {
    db,
    lines,
  });
  const { port } = service.app.server.address() as AddressInfo;
  afterAll(async () => {
    await service.close();
    try {
      await checkSecrets();
    } finally {
      await close();
    }
    const faults = contractFaults();
    if (faults.length > 0) throw new Error(`Not as in the OpenAPI document:\n  ${faults.join('\n  ')}`);
  });
  const { applications, keys } = service.rooms;
  return {
    ...service,
    db,
    url: `http://127.0.0.1:${port}`,
    contractFaults,
    logged: () => lines.join(''),
    application: async (kind = 'development') => {
      const { id } = await applications.create('Test', kind);
      const key = async (role: Role, scopeId?: string): Promise<string> =>
        (
          await keys.create(id, kind, {
            name: role,
            role,
            scopeId: scopeId ?? null,
            expiresAt: new Date(Date.now() + YEAR_MS),
          })
        ).token;
      return { id, token: await key('service'), key };
    },
  };
}

async function openGiven(url: string): Promise<OpenDatabase> {
  const db = openServer(url, () => undefined);
  await migrate(db);
  return { db, url, close: () => db.destroy() };
}

/**
 * Checks each exchange with the service by its own OpenAPI document.
 * @returns the differences from the document until now
 */
function watchContract({ app }: Service): () => readonly string[] {
  const contract = contractOf(app.swagger() as unknown as ApiDocument);
  const folder = inject('contractFolder');
  noteDeclared(folder, contract);
  // Random requests see other answers in each run, so they cannot show that an answer is tested.
  const isRandom = expect.getState().testPath?.includes('.property.') ?? false;
  const seen = new Set<string>();
  const faults: string[] = [];
  watchExchanges(app.server, (exchange) => {
    const verdict = contract.check(exchange);
    faults.push(...verdict.faults);
    if (isRandom || verdict.pair === undefined || seen.has(verdict.pair)) return;
    seen.add(verdict.pair);
    noteSeen(folder, verdict.pair);
  });
  return () => faults;
}

/** By their document as text. The services of a process share them, because each one compiles its schemas. */
const contracts = new Map<string, Contract>();

function contractOf(document: ApiDocument): Contract {
  const text = JSON.stringify(document);
  const contract = contracts.get(text) ?? new Contract(document);
  contracts.set(text, contract);
  return contract;
}

/**
 * Looks for every secret of the service, and of its tests, in its answers, its log and its database.
 * @returns throws if one was found where it must not be
 */
function watchSecrets(
  { app, rooms }: Service,
  masterKeys: readonly MasterKey[],
  { db, lines }: { readonly db: Database; readonly lines: readonly string[] },
): () => Promise<void> {
  const watch = new SecretWatch();
  const { keys, links, endpoints, wizardSessions, people } = rooms;
  const { sessions, invitations, secondFactors, pendingSignIns } = people;
  for (const { key } of masterKeys) watch.add('master key', key);
  keys.create = noting(keys.create.bind(keys), ({ token }) => watch.add('API key', token));
  links.create = noting(links.create.bind(links), ({ token }) => watch.add('link token', token));
  endpoints.create = noting(endpoints.create.bind(endpoints), ({ secret }) => watch.add('webhook secret', secret));
  endpoints.rotateSecret = noting(endpoints.rotateSecret.bind(endpoints), (rotated) => {
    if (rotated !== undefined) watch.add('webhook secret', rotated.secret);
  });
  wizardSessions.create = noting(wizardSessions.create.bind(wizardSessions), ({ cookie }) =>
    watch.add('wizard cookie', cookie),
  );
  wizardSessions.changeCookie = noting(wizardSessions.changeCookie.bind(wizardSessions), (cookie) =>
    watch.add('wizard cookie', cookie),
  );
  sessions.create = noting(sessions.create.bind(sessions), (cookie) => watch.add('dashboard cookie', cookie));
  invitations.create = noting(invitations.create.bind(invitations), (token) => watch.add('invitation token', token));
  invitations.createOwnerLink = noting(invitations.createOwnerLink.bind(invitations), (token) =>
    watch.add('invitation token', token),
  );
  invitations.createSetUpLink = noting(invitations.createSetUpLink.bind(invitations), (token) => {
    if (token !== undefined) watch.add('invitation token', token);
  });
  const offer = secondFactors.offer.bind(secondFactors);
  secondFactors.offer = (memberId) => {
    const made = offer(memberId);
    const typed = typedSecret(made.secret);
    for (const form of [made.secret, typed, typed.replaceAll(' ', '')]) watch.add('second factor', form);
    return made;
  };
  const noteCodes = (codes: readonly string[]): void => {
    for (const code of codes) for (const form of [code, code.replaceAll('-', '')]) watch.add('recovery code', form);
  };
  secondFactors.setUp = noting(secondFactors.setUp.bind(secondFactors), noteCodes);
  secondFactors.renewRecoveryCodes = noting(secondFactors.renewRecoveryCodes.bind(secondFactors), noteCodes);
  const createPending = pendingSignIns.create.bind(pendingSignIns);
  pendingSignIns.create = (...values) => {
    const token = createPending(...values);
    watch.add('pending sign-in', token);
    return token;
  };
  let added = 0;
  const addMade = (): void => {
    const made = madeSecrets();
    for (const each of made.slice(added)) watch.add('password', each);
    added = made.length;
  };
  watchExchanges(app.server, (exchange) => {
    addMade();
    watch.checkExchange(exchange);
  });
  return async () => {
    addMade();
    for (const line of lines) watch.check('the log', line);
    await dumpDatabase(db, (place, value) => watch.check(place, value));
    if (watch.faults.length > 0) throw new Error(`Secrets were found:\n  ${watch.faults.join('\n  ')}`);
  };
}

/** The same method, which passes each result on before its caller gets it. */
const noting =
  <Values extends unknown[], Result>(
    method: (...values: Values) => Promise<Result>,
    note: (result: Result) => void,
  ): ((...values: Values) => Promise<Result>) =>
  async (...values) => {
    const result = await method(...values);
    note(result);
    return result;
  };
