// A server process of the topic http: tells where it listens and what CPU time it has used.
process.env.NODE_ENV = 'production';
const { HTTP_APPS } = await import('./http-apps.mjs');

const { framework, candidate } = JSON.parse(process.argv[2]);
const port = await HTTP_APPS[framework][candidate]();
const tell = () => {
  const { user, system } = process.cpuUsage();
  process.send({ port, cpuMicros: user + system });
};
process.on('message', tell);
process.on('disconnect', () => process.exit());
tell();
