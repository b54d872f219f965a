// A load process of the topic scale-out: keep-alive connections to one gateway. Each connection waits for the response
// before its next request. It uses bare sockets, because the load must not be the bottleneck.

import { connect } from 'node:net';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { ACCOUNTS, accountName, ROUTE, TOKEN } from './scale-out-limits.mjs';

const { port, index } = JSON.parse(process.argv[2]);
const requestOf = (account) =>
  `${ROUTE} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${TOKEN}\r\nx-account: ${account}\r\n\r\n`;
const requests = Array.from({ length: ACCOUNTS }, (_, i) => requestOf(accountName(i)));
const order = pseudoRandomOrder(ACCOUNTS);
let at = index * 251_677;

/**
 * Sends requests over one connection until `next` returns undefined.
 * @param next returns the next request, or undefined after the last one
 * @param onStatus called with the status of each response
 */
function sendAll(next, onStatus) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    const send = () => {
      const request = next();
      if (request === undefined) socket.end(resolve);
      else socket.write(request);
    };
    socket.setNoDelay(true);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the gateway closed a connection')));
    socket.on('connect', send);
    socket.setEncoding('latin1').on('data', (data) => {
      text += data;
      const head = text.indexOf('\r\n\r\n');
      if (head === -1) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(text);
      if (length === null) return reject(new Error(`a response without content-length: ${text}`));
      if (text.length < head + 4 + Number(length[1])) return;
      const status = Number(text.slice(9, 12));
      text = '';
      try {
        onStatus(status);
        send();
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    });
  });
}

async function load({ inFlight, seconds }) {
  let decisions = 0;
  const began = performance.now();
  const end = began + seconds * 1_000;
  const next = () => (performance.now() >= end ? undefined : requests[order[at++ & (order.length - 1)]]);
  const onStatus = (status) => {
    if (status !== 200) throw new Error(`an account far below its limit got status ${status}, expected 200`);
    decisions++;
  };
  await Promise.all(Array.from({ length: inFlight }, () => sendAll(next, onStatus)));
  return { decisions, seconds: (performance.now() - began) / 1_000 };
}

/** @returns how many were accepted */
async function rush({ account, requests: amount, inFlight }) {
  const request = requestOf(account);
  let left = amount;
  let accepted = 0;
  const next = () => (left-- > 0 ? request : undefined);
  const onStatus = (status) => {
    if (status === 200) accepted++;
    else if (status !== 429) throw new Error(`a hot account got status ${status}, expected 200 or 429`);
  };
  await Promise.all(Array.from({ length: inFlight }, () => sendAll(next, onStatus)));
  return { accepted };
}

answerWith((request) => (request.step === 'load' ? load(request) : rush(request)));
