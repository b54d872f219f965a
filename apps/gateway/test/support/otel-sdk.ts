import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A package of its own, so that an installation of headgate does not bring the SDK. */
const FOLDER = resolve(import.meta.dirname, '../otel-sdk');

/** Installs the SDK of OpenTelemetry from its lock file, unless it is there. */
export function installSdk(): void {
  if (existsSync(join(FOLDER, 'node_modules'))) return;
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: FOLDER, stdio: 'pipe' });
}

/** Writes a program that can import the SDK. Returns its path. */
export function writeProgram(name: string, code: string): string {
  const folder = join(FOLDER, '.run');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, code);
  return file;
}
