import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { WizardSessionRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { Language, Words } from '../domain/language.ts';
import type { ProviderName } from '../domain/providers.ts';
import type { CustomProxy } from '../domain/proxy.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Link } from './link.ts';

export type WizardSession = Selectable<WizardSessionRow>;

/** The faults that the wizard describes in its own words. */
export type FaultName =
  | 'required'
  | 'email'
  | 'number'
  | 'choice'
  | 'tooLong'
  | 'proxyHost'
  | 'proxyPort'
  | 'provider'
  | 'denied'
  | 'stale'
  | 'failed';

/** A fault of an entered value. */
export interface EnteredFault {
  /** The name of the input. Absent: the fault is about the whole page. */
  readonly field?: string | undefined;
  /** A text of the provider, or the name of one of the wizard's texts. */
  readonly message: Words | FaultName;
}

/** The data that a session keeps between two pages. */
export interface WizardData {
  readonly language?: Language | undefined;
  readonly provider?: ProviderName | undefined;
  /** State of the provider's flow. */
  readonly flow?: unknown;
  /** The state that the provider's own site must return. Absent: the newest state was returned. */
  readonly callbackState?: string | undefined;
  /** The state that was returned, while the provider works on it. */
  readonly takenState?: string | undefined;
  /** Whether the provider could not make its first page. */
  readonly isUnreachable?: boolean | undefined;
  /** Pages of the flow that are done. The first page also asks for the proxy. */
  readonly pagesDone?: number | undefined;
  /** The values that were entered on the current page, without passwords and codes. */
  readonly values?: Readonly<Record<string, string>> | undefined;
  readonly faults?: readonly EnteredFault[] | undefined;
  readonly proxy?: CustomProxy | undefined;
  readonly country?: string | undefined;
  /** The account that was identified, if it is not the one to reconnect. */
  readonly otherAccount?: string | undefined;
}

const COOKIE_BYTES = 32;
/** How long the cookie before the last change is still accepted. */
const CHANGE_GRACE_MS = 10_000;
/** How long a session lasts at least after its account was linked, so that the user sees the end of a sync. */
const AFTER_LINK_MS = 3_600_000;
const MAX_ATTEMPTS = 5;
const PAUSE_MS = 60_000;

const hashOf = (cookie: string): string => createHash('sha256').update(cookie).digest('hex');
const place = (id: string): string => `wizard_sessions/${id}/data`;

/** The sessions of browsers that opened a link. A browser uses a separate session for each link. */
export class WizardSessions {
  readonly #changeKey: Uint8Array;

  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
  ) {
    this.#changeKey = envelope.derive('wizard-cookie');
  }

  /** Starts a session. Its cookie is returned here and never again. */
  async create(
    link: Link,
    step: WizardSession['step'],
    data: WizardData,
  ): Promise<{ readonly session: WizardSession; readonly cookie: string }> {
    const now = this.clock();
    const id = newId('wzs', now);
    const cookie = randomBytes(COOKIE_BYTES).toString('base64url');
    const session = await this.db
      .insertInto('wizard_sessions')
      .values({
        id,
        link_id: link.id,
        cookie_hash: hashOf(cookie),
        step,
        data: this.envelope.sealJson(place(id), data),
        expires_at: link.expires_on,
        created_at: new Date(now),
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    return { session, cookie };
  }

  /** The session of a cookie. Undefined after the session ended. */
  async resolve(linkId: string, cookie: string): Promise<WizardSession | undefined> {
    const now = this.clock();
    const hash = hashOf(cookie);
    return this.db
      .selectFrom('wizard_sessions')
      .selectAll()
      .where('link_id', '=', linkId)
      .where('expires_at', '>', new Date(now))
      .where(({ eb, or, and }) =>
        or([
          eb('cookie_hash', '=', hash),
          and([eb('previous_cookie_hash', '=', hash), eb('cookie_changed_at', '>', new Date(now - CHANGE_GRACE_MS))]),
        ]),
      )
      .executeTakeFirst();
  }

  dataOf({ id, data }: WizardSession): WizardData {
    return data === null ? {} : this.envelope.openJson<WizardData>(place(id), data);
  }

  /** Moves a session to a step. Does nothing if the session is closed. */
  async save(id: string, step: WizardSession['step'], data: WizardData): Promise<void> {
    await this.db
      .updateTable('wizard_sessions')
      .set({ step, data: this.envelope.sealJson(place(id), data) })
      .where('id', '=', id)
      .where('step', 'not in', ['linked', 'cancelled'])
      .execute();
  }

  /** Like {@link save}, if nothing was saved since the session was read. False: something was. */
  async replace({ id, data: before }: WizardSession, step: WizardSession['step'], data: WizardData): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('wizard_sessions')
      .set({ step, data: this.envelope.sealJson(place(id), data) })
      .where('id', '=', id)
      // Each sealed value is different, so an equal one is the same one.
      .where('data', '=', before)
      .where('step', 'not in', ['linked', 'cancelled'])
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Changes the language of a session, at any step. Does nothing if the session is changed at the same moment. */
  async setLanguage(session: WizardSession, language: Language): Promise<void> {
    await this.db
      .updateTable('wizard_sessions')
      .set({ data: this.envelope.sealJson(place(session.id), { ...this.dataOf(session), language }) })
      .where('id', '=', session.id)
      // A language must not bring back a state that was returned meanwhile.
      .where('data', '=', session.data)
      .execute();
  }

  /** Closes a session. All entries of the user are erased; only the language is kept. */
  async close(id: string, step: 'linked' | 'cancelled', db: Database = this.db): Promise<void> {
    const session = await db.selectFrom('wizard_sessions').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const { language } = this.dataOf(session);
    await db
      .updateTable('wizard_sessions')
      .set({ step, data: this.envelope.sealJson(place(id), { language }), expires_at: this.endAfterLink(session) })
      .where('id', '=', id)
      .execute();
  }

  /** When a session ends whose account is linked now. */
  endAfterLink({ expires_at }: WizardSession): Date {
    return new Date(Math.max(expires_at.getTime(), this.clock() + AFTER_LINK_MS));
  }

  /**
   * Changes the cookie of a session once, so that a cookie that became known before is worth nothing. The old one works
   * for a few seconds more: a browser that submits twice drops the first answer, and the new cookie with it. Both
   * requests get the same new cookie, which only the service can compute.
   */
  async changeCookie({ id, cookie_hash, previous_cookie_hash }: WizardSession, cookie: string): Promise<string> {
    if (previous_cookie_hash !== null && cookie_hash === hashOf(cookie)) return cookie;
    const changed = createHmac('sha256', this.#changeKey).update(cookie).digest('base64url');
    await this.db
      .updateTable('wizard_sessions')
      .set({
        cookie_hash: hashOf(changed),
        previous_cookie_hash: hashOf(cookie),
        cookie_changed_at: new Date(this.clock()),
      })
      .where('id', '=', id)
      .where('cookie_hash', '=', hashOf(cookie))
      .execute();
    return changed;
  }

  /** Takes one of the attempts at a password or a code. False during a pause. */
  async takeAttempt(id: string): Promise<boolean> {
    await this.db
      .updateTable('wizard_sessions')
      .set({ attempts: 0, paused_until: null })
      .where('id', '=', id)
      .where('paused_until', '<=', new Date(this.clock()))
      .execute();
    const row = await this.db
      .updateTable('wizard_sessions')
      .set(({ eb }) => ({ attempts: eb('attempts', '+', 1) }))
      .where('id', '=', id)
      .where('attempts', '<', MAX_ATTEMPTS)
      .where('paused_until', 'is', null)
      .returning('id')
      .executeTakeFirst();
    // The pause is missing if a process ended during the last attempt.
    if (row === undefined) await this.failAttempt(id);
    return row !== undefined;
  }

  /** Notes that an attempt was wrong. The last one starts a pause. */
  async failAttempt(id: string): Promise<void> {
    await this.db
      .updateTable('wizard_sessions')
      .set({ paused_until: new Date(this.clock() + PAUSE_MS) })
      .where('id', '=', id)
      .where('attempts', '>=', MAX_ATTEMPTS)
      .where('paused_until', 'is', null)
      .execute();
  }

  /** Gives back an attempt that was not wrong. */
  async returnAttempt(id: string): Promise<void> {
    await this.db
      .updateTable('wizard_sessions')
      .set(({ eb }) => ({ attempts: eb('attempts', '-', 1) }))
      .where('id', '=', id)
      .where('attempts', '>', 0)
      .execute();
  }
}
