// Puts an application, an API key and accounts into the database of the service. Prints the token and the ids.
import { loadServiceParts } from './service-parts.mjs';

const [environment, count, { provider, credentials }] = process.argv.slice(2).map((text) => JSON.parse(text));
const { Accounts, Applications, Envelope, Events, Keys, createLog, openStore, readConfig } = await loadServiceParts();
const config = readConfig(environment);
const log = createLog('silent');
const { db, masterKeys, close } = await openStore(config, log);
const { id, environment: kind } = await new Applications(db, Date.now).create('Benchmark', 'development');
const expiresAt = new Date(Date.now() + 86_400_000);
const key = { name: 'benchmark', role: 'service', scopeId: null, expiresAt };
const { token } = await new Keys(db, Date.now, log).create(id, kind, key);
const accounts = new Accounts(db, new Envelope(masterKeys), Date.now, new Events(Date.now));
const ids = [];
for (let i = 0; i < count; i++) {
  const name = `mailbox-${i}@example.com`;
  const secret = { credentials };
  ids.push((await accounts.insert(id, { provider, providerUserId: name, name, scopeId: null, secret })).id);
}
await close();
console.log(JSON.stringify({ token, accounts: ids }));
