import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import type { Owner } from 'headgate-testbed/server-user';
import { cleanUpLater } from './clean-up.ts';
import { deployText, dockerInstructions, type Instruction, listOf, ROOT } from './deploy-files.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The image of the Dockerfile, without a container engine: the files of its last stage, and how they are started. */
export interface Image {
  /** The folder of the files of the image. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  /** The program and its arguments, as they are in the image. */
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly health: readonly string[];
  /** The user of the image if this process may change its user. */
  readonly owner: Owner | undefined;
  /** The instructions that were not executed, since they are about the base image. */
  readonly skipped: readonly string[];
}

interface Stage {
  readonly root: string;
  readonly env: Record<string, string>;
  folder: string;
  user: string;
}

/** Instructions that change the files of the base image. */
const OF_BASE = /^rm -rf \/(usr|opt)\//;
const OTHERS = ['EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'];

/** Executes the Dockerfile in temporary folders, except the instructions about the base image. */
export function buildImage(): Image {
  const instructions = dockerInstructions();
  const stages = new Map<string, Stage>();
  const skipped: string[] = [];
  let stage: Stage | undefined;
  for (const instruction of instructions) {
    if (instruction.name === 'FROM') {
      stage = { root: temporaryFolder(), env: {}, folder: '/', user: 'root' };
      stages.set(/ AS (\S+)$/.exec(instruction.rest)?.[1] ?? '', stage);
    } else if (stage !== undefined) execute(instruction, stage, stages, skipped);
  }
  if (stage === undefined) throw new Error('The Dockerfile contains no stage.');
  const { root, env, user } = stage;
  return {
    ...{ root, env, skipped, owner: readOnly(root, user) },
    entrypoint: listOf(instructions, 'ENTRYPOINT'),
    command: listOf(instructions, 'CMD'),
    health: listOf(instructions, 'HEALTHCHECK'),
  };
}

function execute(
  { name, rest }: Instruction,
  stage: Stage,
  stages: ReadonlyMap<string, Stage>,
  skipped: string[],
): void {
  if (name === 'WORKDIR') stage.folder = rest;
  else if (name === 'USER') stage.user = rest;
  else if (name === 'ENV') for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) stage.env[key] = value;
  else if (name === 'COPY') copy(rest.split(' '), stage, stages);
  else if (name === 'RUN' && OF_BASE.test(rest)) skipped.push(rest);
  else if (name === 'RUN') run(rest, stage);
  else if (!OTHERS.includes(name)) throw new Error(`The test does not know ${name}.`);
}

function run(command: string, { root, folder }: Stage): void {
  const cwd = join(root, folder);
  mkdirSync(cwd, { recursive: true });
  const made = /^install -d -o node -g node -m 700 (\/\S+)$/.exec(command)?.[1];
  if (made !== undefined) mkdirSync(join(root, made), { mode: 0o700 });
  // The build uses the packages of this repository.
  else if (command === 'npm ci --ignore-scripts') linkPackages(cwd);
  else {
    const whole = command.startsWith('npm ci ') ? `${command} --prefer-offline --silent` : command;
    execFileSync('sh', ['-c', whole], { cwd, stdio: 'pipe' });
  }
}

/** The packages that are installed here, and a separate cache for the build. */
function linkPackages(cwd: string): void {
  const installed = join(ROOT, 'node_modules');
  mkdirSync(join(cwd, 'node_modules'));
  for (const name of readdirSync(installed).filter(
    (each) => !['.cache', 'headgate', 'communication-api'].includes(each),
  ))
    symlinkSync(join(installed, name), join(cwd, 'node_modules', name));
  symlinkSync('..', join(cwd, 'node_modules/headgate'));
  mkdirSync(join(cwd, 'apps/communication-api'), { recursive: true });
  const own = 'apps/communication-api/node_modules';
  if (existsSync(join(ROOT, own))) symlinkSync(join(ROOT, own), join(cwd, own));
}

/** COPY: the content of a folder, or a file. The last path is the target, a folder if it ends with a slash. */
function copy(words: readonly string[], stage: Stage, stages: ReadonlyMap<string, Stage>): void {
  const [, from] = /^--from=(\S+)$/.exec(words[0] ?? '') ?? [];
  const paths = from === undefined ? words : words.slice(1);
  const target = paths.at(-1) as string;
  const source = from === undefined ? ROOT : stages.get(from)?.root;
  if (source === undefined) throw new Error(`COPY --from=${from}: no earlier stage with this name.`);
  for (const path of paths.slice(0, -1)) {
    const isFolder = readdirOf(join(source, path)) !== undefined;
    const into = posix.join(stage.folder, target, !isFolder && target.endsWith('/') ? basename(path) : '');
    cpSync(join(source, path), join(stage.root, into), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => from !== undefined || !isIgnored(file.slice(ROOT.length + 1)),
    });
  }
}

function readdirOf(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

const IGNORED = deployText('Dockerfile.dockerignore').trim().split('\n');

/** Whether the .dockerignore keeps a path out of the build. */
const isIgnored = (path: string): boolean =>
  IGNORED.some((pattern) =>
    pattern.startsWith('**/') ? path.split('/').includes(pattern.slice(3)) : path.split('/')[0] === pattern,
  );

/** Takes the right to write away from everyone, but from the user of the image in its data. */
function readOnly(root: string, user: string): Owner | undefined {
  const [uid = 0, gid = 0] = user.split(':').map(Number);
  const data = join(root, 'data');
  execFileSync('chmod', ['-R', 'a-w,a+rX', root]);
  chmodSync(data, 0o700);
  cleanUpLater(() => execFileSync('chmod', ['-R', 'u+w', root]));
  if (process.getuid?.() !== 0) return undefined;
  chownSync(data, uid, gid);
  return { uid, gid };
}

/** The packages that are installed in a folder, as `name@version`. */
export function installedPackages(folder: string): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { readonly version?: string; readonly link?: boolean }>;
  };
  const names = Object.entries(packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && link !== true)
    .map(
      ([path, { version }]) => `${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`,
    );
  return [...new Set(names)].sort();
}
