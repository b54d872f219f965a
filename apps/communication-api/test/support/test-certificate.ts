import { type Certificate, createCertificate } from 'headgate-testbed/certificate';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A certificate for 127.0.0.1, localhost and all hosts of example.test, which every process of the tests trusts. */
    certificate: Pick<Certificate, 'cert' | 'key' | 'certFile' | 'keyFile'>;
  }
}

/** Each project loads this module for itself; they share the certificate through the one process that sets it up. */
const shared = globalThis as { communicationApiCertificate?: Certificate | undefined };

/** Makes the certificate before any test. Node.js reads the variable when a process starts, so each test process trusts it. */
export function setup(project: TestProject): (() => void) | undefined {
  const isFirst = shared.communicationApiCertificate === undefined;
  shared.communicationApiCertificate ??= createCertificate('localhost', '*.example.test');
  const { cert, key, certFile, keyFile, remove } = shared.communicationApiCertificate;
  process.env.NODE_EXTRA_CA_CERTS = certFile;
  project.provide('certificate', { cert, key, certFile, keyFile });
  if (!isFirst) return undefined;
  return () => {
    shared.communicationApiCertificate = undefined;
    delete process.env.NODE_EXTRA_CA_CERTS;
    remove();
  };
}
