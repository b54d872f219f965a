import { join } from 'node:path';
import ts from 'typescript';

/** An object of Kubernetes, as YAML or Helm gives it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * The faults of each manifest by the types of the Kubernetes API (the package `kubernetes-types`, made from its OpenAPI
 * document): unknown fields, missing fields and wrong types. One call takes a second, for any number of manifests.
 */
export function manifestFaults(manifests: readonly Manifest[]): string[][] {
  const lines = manifests.map(
    (each, i) => `const m${i}: import('kubernetes-types/${moduleOf(each)}').${each.kind} = ${JSON.stringify(each)};`,
  );
  const name = join(import.meta.dirname, 'manifests-of-a-test.ts');
  const text = `${lines.join('\n')}\nexport {};`;
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es5.d.ts'] },
    ...{ module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (file) => file === name || fileExists.call(host, file);
  host.getSourceFile = (file, version) =>
    file === name ? ts.createSourceFile(file, text, version) : getSourceFile.call(host, file, version);
  const faults: string[][] = manifests.map(() => []);
  for (const { file, start = 0, messageText } of ts.getPreEmitDiagnostics(ts.createProgram([name], options, host))) {
    const fault = ts.flattenDiagnosticMessageText(messageText, ' ');
    const line = file?.fileName === name ? file.getLineAndCharacterOfPosition(start).line : undefined;
    if (line === undefined) throw new Error(fault);
    faults[line]?.push(fault);
  }
  return faults;
}

/** `apps/v1`, `core/v1` of `v1`, `networking/v1` of `networking.k8s.io/v1`. */
function moduleOf({ apiVersion }: Manifest): string {
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion];
  return `${group.split('.')[0]}/${version}`;
}
