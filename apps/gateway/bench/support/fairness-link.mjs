// The network between gateways and Redis in the topic fairness: one process with a link per Redis. Each link carries a
// limited number of bytes per second in each direction, and its connections share it in the order in which bytes come.
import { connect, createServer } from 'node:net';
import { answerWith } from 'headgate-bench/member';

const { redisPorts, bytesPerSecond } = JSON.parse(process.argv[2]);
/** Bytes that are sent at once. 16 KiB take 1.3 ms at 100 Mbit/s. */
const PIECE = 16_384;
/** Timers are late by a millisecond or more. A lane makes up for it within this time. */
const CATCH_UP_MS = 10;

/** One direction of a link. */
function createLane() {
  /** When the lane has sent everything that it was given. */
  let freeAt = 0;
  return (bytes) => {
    freeAt = Math.max(freeAt, performance.now() - CATCH_UP_MS) + (bytes / bytesPerSecond) * 1_000;
    return freeAt;
  };
}

/** A connection has at most one chunk on the lane, so that it cannot fill the lane's queue alone. */
function carry(from, to, reserve) {
  from.on('data', (chunk) => {
    from.pause();
    sendFrom(chunk, 0);
  });
  const sendFrom = (chunk, at) => {
    if (at >= chunk.length) {
      if (!to.destroyed && to.writableNeedDrain) to.once('drain', () => from.resume());
      else from.resume();
      return;
    }
    const piece = chunk.subarray(at, at + PIECE);
    const due = reserve(piece.length) - performance.now();
    const send = () => {
      to.write(piece);
      sendFrom(chunk, at + PIECE);
    };
    if (due < 1) send();
    else setTimeout(send, due);
  };
  from.on('error', () => {});
  from.on('close', () => to.destroy());
}

function openLink(redisPort) {
  const [up, down] = [createLane(), createLane()];
  const server = createServer({ noDelay: true }, (socket) => {
    const redis = connect({ port: redisPort, host: '127.0.0.1', noDelay: true });
    carry(socket, redis, up);
    carry(redis, socket, down);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}

const ports = await Promise.all(redisPorts.map(openLink));
answerWith(() => ({ ports }));
