import * as base64 from 'nodemailer/lib/base64';
import type MimeNode from 'nodemailer/lib/mime-node';
import * as qp from 'nodemailer/lib/qp';

const ENCODERS: Readonly<Record<string, (text: string) => string>> = {
  'quoted-printable': (text) => qp.wrap(qp.encode(text)),
  base64: (text) => base64.wrap(base64.encode(text)),
};

/**
 * The message of a node whose contents are all texts. It is what `build` of the node makes: the node's chain of streams
 * takes several times the processor time, and its reader gets a dozen pieces.
 */
export function textMessage(node: MimeNode): Buffer {
  const message = partOf(node);
  return Buffer.from(message.endsWith('\n') ? message : `${message}\r\n`);
}

function partOf(node: MimeNode): string {
  // Before all else: it chooses the boundary.
  const head = `${node.buildHeaders()}\r\n\r\n`;
  if (node.multipart) {
    const line = `--${node.boundary || ''}`;
    return head + [...node.childNodes.map((child) => `${line}\r\n${partOf(child)}`), `${line}--\r\n`].join('\r\n');
  }
  const { content = '' } = node;
  if (typeof content !== 'string') throw new TypeError('A content of the message is not a text.');
  return head + (ENCODERS[node.getTransferEncoding() || '']?.(content) ?? content);
}
