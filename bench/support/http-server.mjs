// A server process of the topic http. It reports its port and the CPU time that it has used.
process.env.NODE_ENV = 'production';
const { cpuMicros } = await import('headgate-bench/cpu');
const { HTTP_APPS } = await import('./http-apps.mjs');

const { framework, candidate } = JSON.parse(process.argv[2]);
const port = await HTTP_APPS[framework][candidate]();
const report = () => process.send({ port, cpuMicros: cpuMicros() });
process.on('message', report);
process.on('disconnect', () => process.exit());
report();
