import { writeFileSync } from 'node:fs';
import { openInMemory } from './db/embedded.ts';
import { migrate } from './db/migrate.ts';

/** Writes a dump of an empty, migrated database to a file. The build runs it. */
const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
const { db, dump } = await openInMemory();
await migrate(db);
writeFileSync(file, await dump());
await db.destroy();
