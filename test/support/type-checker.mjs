/** A thread that checks projects with the compiler that `workerData` names. One after the other: a warm compiler is several times as fast. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

const ts = createRequire(import.meta.url)(workerData);

/** What was parsed of third parties, for the next project with the same options. */
const parsed = new Map();

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
  const program = ts.createProgram({ rootNames, options, configFileParsingDiagnostics, host: hostFor(options) });
  const faults = program
    .getSourceFiles()
    .filter((file) => !program.isSourceFileDefaultLibrary(file) && !isOfThirdParty(file.fileName))
    .flatMap((file) => ts.getPreEmitDiagnostics(program, file));
  return [...new Set(faults)].map((fault) => `${fault.file?.fileName ?? folder}: ${textOf(fault)}`);
}

function isOfThirdParty(file) {
  return /node_modules\/(?!headgate\/)/.test(file);
}

function hostFor(options) {
  const host = ts.createCompilerHost(options);
  const { configFilePath, lib, types, ...others } = options;
  const getSourceFile = (file, how, ...rest) => {
    if (!isOfThirdParty(file)) return host.getSourceFile(file, how, ...rest);
    const key = JSON.stringify([file, how, others]);
    if (!parsed.has(key)) parsed.set(key, host.getSourceFile(file, how, ...rest));
    return parsed.get(key);
  };
  return { ...host, getSourceFile };
}

function textOf({ code, messageText }) {
  return `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}
