// The process that log.mjs measures: simulates two policies with the log of its standard input. Prints the report as JSON.
import { readTrace, simulate } from 'headgate-simulate';

const routes = ['GET /api/v1/chats', 'POST /api/v1/emails'].map((route) => ({ route, account: 'query.account_id' }));
const policyOf = (...allMethods) => ({
  limits: { default: { allMethods, routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } } },
});

const report = await simulate({
  current: policyOf('60/1m', '5000/1d'),
  candidate: policyOf('30/1m', '3000/1d'),
  trace: readTrace(process.stdin, { routes, format: process.argv[2] }),
});
console.log(JSON.stringify(report));
