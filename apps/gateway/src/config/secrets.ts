import type { ConfigIssue } from './config-error.ts';
import { isObject, type JsonObject, objectOrEmpty } from './json.ts';
import { readReferencedFile } from './referenced-file.ts';

/** A config whose references to secrets have been replaced by the secrets. */
export interface WithSecrets {
  readonly file: JsonObject;
  readonly issues: readonly ConfigIssue[];
  /** The source of the secret at each place, such as `the environment variable API_KEY` for `keys[0].token`. */
  readonly origins: ReadonlyMap<string, string>;
}

/** `${NAME}`, as a shell and many config formats write it, also as a part of the text. */
const IN_BRACES = /\$\{([A-Za-z_]\w*)[^}]*\}/;
const WHOLE = /^(?:\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%)$/;

/**
 * Reads the secrets that `{ "env": "NAME" }` and `{ "file": "PATH" }` refer to, at each place of a secret. References
 * that are malformed, or that cannot be read, stay. No issue ever shows a secret.
 * @param folder the config file's folder; paths are relative to it
 */
export function readSecrets(file: JsonObject, folder: string): WithSecrets {
  const issues: ConfigIssue[] = [];
  const origins = new Map<string, string>();
  const read = (value: unknown, path: string): unknown => {
    const secret = isObject(value) ? readReference(value as JsonObject, folder) : placeholder(value);
    if (secret === undefined) return value;
    if ('reason' in secret) {
      issues.push({ path, reason: secret.reason });
      return value;
    }
    origins.set(path, secret.origin);
    return secret.text;
  };
  /** A copy of an object with these secrets read. Any other value is returned unchanged. */
  const copy = <Value>(value: Value, names: readonly string[], path: string): Value => {
    if (!isObject(value)) return value;
    const given = names.filter((name) => Object.hasOwn(value, name));
    const secrets = given.map((name) => [name, read((value as JsonObject)[name], `${path}${name}`)]);
    return { ...value, ...Object.fromEntries(secrets) };
  };
  const copyTokens = (tokens: readonly unknown[], path: string) =>
    tokens.map((token, i) => copy(token, ['sha256', 'token'], `${path}[${i}].`));
  const { keys, idempotency, admin, decisions, store } = file;
  const { postgres } = objectOrEmpty(store);
  const { tokens } = objectOrEmpty(admin);
  return {
    file: {
      ...copy(file, ['store'], ''),
      ...(isObject(postgres)
        ? { store: { ...(store as object), postgres: copy(postgres, ['url', 'password'], 'store.postgres.') } }
        : {}),
      ...(isObject(idempotency) ? { idempotency: copy(idempotency, ['secret'], 'idempotency.') } : {}),
      ...(isObject(decisions) ? { decisions: copy(decisions, ['secret'], 'decisions.') } : {}),
      ...(Array.isArray(keys) ? { keys: copyTokens(keys, 'keys') } : {}),
      ...(Array.isArray(tokens) ? { admin: { ...(admin as object), tokens: copyTokens(tokens, 'admin.tokens') } } : {}),
    },
    issues,
    origins,
  };
}

type Secret = { readonly text: string; readonly origin: string } | { readonly reason: string };

/** Undefined if the reference is malformed: the schema reports it. */
function readReference(reference: JsonObject, folder: string): Secret | undefined {
  const { env, file } = reference;
  if (Object.keys(reference).length !== 1) return undefined;
  if (typeof env === 'string' && env !== '') return readVariable(env);
  return typeof file === 'string' && file !== '' ? readSecretFile(file, folder) : undefined;
}

function readVariable(name: string): Secret {
  // A secret in the place of a name must not be printed.
  if (!/^[A-Za-z_]\w*$/.test(name)) return { reason: 'env must be the name of an environment variable' };
  const origin = `the environment variable ${name}`;
  const text = process.env[name];
  if (text === undefined) return { reason: `${origin} is not set` };
  return text === '' ? { reason: `${origin} is empty` } : { text, origin };
}

function readSecretFile(name: string, folder: string): Secret {
  const content = readReferencedFile(name, folder);
  if ('reason' in content) return content;
  // Editors, and `echo` in a shell, end a file with a line break.
  return { text: content.text.replace(/\r?\n$/, ''), origin: `the file ${JSON.stringify(name)}` };
}

/**
 * Variables in a text are not replaced. The name of the variable would be the secret, which is easy to guess, so
 * it is a fault.
 */
function placeholder(value: unknown): Secret | undefined {
  if (typeof value !== 'string') return undefined;
  const whole = WHOLE.exec(value);
  const name = IN_BRACES.exec(value)?.[1] ?? whole?.[1] ?? whole?.[2];
  if (name === undefined) return undefined;
  const isWhole = whole !== null || /^\$\{[^}]*\}$/.test(value);
  return {
    reason: isWhole
      ? `a variable in a text is not replaced: write { "env": "${name}" }`
      : `the variable ${name} in a text is not replaced: put the whole text into one variable, and write { "env": "NAME" }`,
  };
}
