// For the manifest of the house in this folder, while it is packed: `file:` is only right inside of this repository, so the
// library's exact version takes its place. With --undo, the manifest is as it was.
import { readFileSync, writeFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [inside, published] = ['"headgate": "file:../.."', `"headgate": "${version}"`];
const [from, to] = process.argv.includes('--undo') ? [published, inside] : [inside, published];
const manifest = readFileSync('package.json', 'utf8');
if (!manifest.includes(from)) throw new Error(`package.json: ${from} is missing`);
writeFileSync('package.json', manifest.replace(from, to));
