import { Applications } from '../../src/applications/applications.ts';
import { openDatabase, openDataDirectory } from '../../src/db/embedded.ts';

/** Writes rows into the database of a data directory until it is killed, and prints the id of each that was stored. */
const directory = await openDataDirectory(process.argv[2] ?? '');
const { db } = await openDatabase(directory, undefined);
const applications = new Applications(db, Date.now);
for (;;) {
  const { id } = await applications.create('Loop', 'development');
  process.stdout.write(`${id}\n`);
}
