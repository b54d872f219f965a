import { writeFileSync } from 'node:fs';
import { makeTemplate } from './db/make-template.ts';

/** Writes a dump of an empty, migrated database to a file. The build runs it. */
const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
writeFileSync(file, await makeTemplate());
