import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { spoolBody } from '../../src/body/spool.ts';
import { openTemporaryFile } from '../../src/body/temporary-file.ts';

/** Errors of the system that the tests simulate. */
const system = vi.hoisted(() => ({ keepsNames: false, isFull: false, mostWritten: Number.POSITIVE_INFINITY }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const { promisify } = await import('node:util');
  const write = promisify(fs.write);
  return {
    ...fs,
    unlinkSync: (path: string) => {
      if (system.keepsNames) throw Object.assign(new Error('EBUSY'), { code: 'EBUSY' });
      fs.unlinkSync(path);
    },
    // The code only uses its promise form.
    write: Object.assign(() => {}, {
      [promisify.custom]: async (fd: number, bytes: Uint8Array, offset: number, length: number, position: number) => {
        if (system.isFull) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
        return write(fd, bytes, offset, Math.min(length, system.mostWritten), position);
      },
    }),
  };
});

let directory: string;
beforeEach(() => {
  Object.assign(system, { keepsNames: false, isFull: false, mostWritten: Number.POSITIVE_INFINITY });
  directory = mkdtempSync(join(tmpdir(), 'headgate-file-test-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const bytes = Buffer.alloc(100_000, 'headgate ');

describe('a temporary file', () => {
  it('keeps its name until it is closed, if the system cannot remove it earlier', async () => {
    system.keepsNames = true;
    const file = openTemporaryFile(directory);
    expect(readdirSync(directory)).toHaveLength(1);
    system.keepsNames = false;
    await file.close();
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('a spooled body', () => {
  it('is refused if the disk is full, and frees everything', async () => {
    system.isFull = true;
    const spooled = spoolBody(Readable.from([bytes, bytes]), { maxBytes: 1_000_000, memoryBytes: 1_000, directory });
    await expect(spooled).rejects.toMatchObject({ status: 503, reason: 'no_storage', cause: { code: 'ENOSPC' } });
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is complete even if the system writes less than asked', async () => {
    system.mostWritten = 1_000;
    const body = await spoolBody(Readable.from([bytes]), { maxBytes: 1_000_000, memoryBytes: 1_000, directory });
    expect(Buffer.concat(await body.open().toArray()).equals(bytes)).toBe(true);
    await body.dispose();
  });
});
