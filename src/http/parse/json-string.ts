import { decodeUtf8 } from './utf8.ts';

/**
 * Decodes a JSON string.
 * @param lexeme its bytes as the lexer passed them, quotes included
 */
export function parseJsonString(lexeme: Uint8Array): string {
  const text = decodeUtf8(lexeme) ?? '""';
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}
