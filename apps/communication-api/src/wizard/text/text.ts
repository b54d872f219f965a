import type { Language } from '../../domain/language.ts';
import { de } from './de.ts';
import { en, type Text } from './en.ts';

export type { Text };

/** The texts of the wizard, by language. */
export const TEXTS: Readonly<Record<Language, Text>> = { en, de };
