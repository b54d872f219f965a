import { createServer, type Server } from 'node:http';

/** The provider of the demonstration. It answers like an API for messages, and stores nothing. */
export function createMockProvider(): Server {
  return createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      const { status, body } = answer(request.method ?? '', new URL(request.url ?? '/', 'http://mock').pathname);
      const text = JSON.stringify(body);
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      response.end(text);
    });
  });
}

function answer(method: string, path: string): { status: number; body: object } {
  if (method === 'POST' && path === '/api/v1/emails') {
    const tracking_id = crypto.randomUUID();
    return { status: 201, body: { object: 'EmailSent', tracking_id, provider_id: null, provider_immutable_id: null } };
  }
  const chat = /^\/api\/v1\/chats\/([^/]+)$/.exec(path)?.[1];
  if (method === 'GET' && chat !== undefined) return { status: 200, body: { object: 'Chat', id: chat, messages: [] } };
  if (method === 'GET' && path === '/v2/accounts') return { status: 200, body: { object: 'AccountList', items: [] } };
  return { status: 404, body: { object: 'Error', message: 'the mock provider has no such route' } };
}
