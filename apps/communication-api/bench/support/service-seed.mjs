// Puts applications, an API key, accounts and a person into the database of the service. Prints the token, the ids and the
// cookie of the person's session.
import { randomUUID } from 'node:crypto';
import { loadServiceParts } from './service-parts.mjs';

const [environment, count, { provider, credentials }] = process.argv.slice(2).map((text) => JSON.parse(text));
const { Accounts, Applications, Envelope, Events, Keys, createLog, createPeople, openStore, readConfig } =
  await loadServiceParts();
/** A page of the dashboard with fewer of them would be smaller than usual. */
const [APPLICATIONS, KEYS] = [20, 20];
const config = readConfig(environment);
const log = createLog('silent');
const { db, masterKeys, close } = await openStore(config, log);
const applications = new Applications(db, Date.now);
const { id, environment: kind } = await applications.create('Benchmark', 'development');
for (let i = 1; i < APPLICATIONS; i++) await applications.create(`Application ${i}`, 'production');
const expiresAt = new Date(Date.now() + 86_400_000);
const key = { name: 'benchmark', role: 'service', scopeId: null, expiresAt };
const keys = new Keys(db, Date.now, log);
const { token } = await keys.create(id, kind, key);
for (let i = 1; i < KEYS; i++) await keys.create(id, kind, { ...key, name: `Account key ${i}`, role: 'account' });
const envelope = new Envelope(masterKeys);
const accounts = new Accounts(db, envelope, Date.now, new Events(Date.now));
const ids = [];
for (let i = 0; i < count; i++) {
  const name = `mailbox-${i}@example.com`;
  const secret = { credentials };
  ids.push((await accounts.insert(id, { provider, providerUserId: name, name, scopeId: null, secret })).id);
}
const { invitations, sessions } = createPeople(db, Date.now, envelope);
const person = { name: 'Ann', email: `${randomUUID()}@example.com`, password: randomUUID() };
const { member: owner } = await invitations.accept(await invitations.createOwnerLink(), person);
const cookie = `dashboard=${await sessions.create(owner)}`;
await close();
console.log(JSON.stringify({ token, accounts: ids, application: id, cookie }));
