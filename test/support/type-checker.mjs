/** A thread that checks projects with the compiler that `workerData` names. One after the other: a warm compiler is several times as fast. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

const ts = createRequire(import.meta.url)(workerData);

parentPort.on('message', (folder) => parentPort.postMessage(faultsIn(folder)));

/**
 * What `tsc -p folder` reports about the project and about our types. Types of third parties are used, but are not checked for faults of
 * their own: those of Elysia, h3 and Koa have some, and they take most of the time.
 */
function faultsIn(folder) {
  const host = {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (fault) => {
      throw new Error(textOf(fault));
    },
  };
  const config = ts.getParsedCommandLineOfConfigFile(join(folder, 'tsconfig.json'), {}, host);
  const { options, fileNames: rootNames, errors: configFileParsingDiagnostics } = config;
  const program = ts.createProgram({ rootNames, options, configFileParsingDiagnostics });
  const faults = program
    .getSourceFiles()
    .filter((file) => !program.isSourceFileDefaultLibrary(file) && !/node_modules\/(?!headgate\/)/.test(file.fileName))
    .flatMap((file) => ts.getPreEmitDiagnostics(program, file));
  return [...new Set(faults)].map((fault) => `${fault.file?.fileName ?? folder}: ${textOf(fault)}`);
}

function textOf({ code, messageText }) {
  return `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}
