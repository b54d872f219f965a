import { decodeUtf8 } from './utf8.ts';

/**
 * What a string of a JSON text says.
 * @param lexeme as the lexer gave it, quotes included
 */
export function parseJsonString(lexeme: Uint8Array): string {
  const text = decodeUtf8(lexeme) ?? '""';
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}
