import type { Database } from '../../src/db/database.ts';
import { newId } from '../../src/domain/ids.ts';
import type { MemberRole } from '../../src/domain/member-roles.ts';
import { MEMBER_FIELDS, type Member } from '../../src/people/member.ts';
import { ORGANIZATION_ID } from '../../src/people/organizations.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';
import { quickHash } from './quick-hash.ts';
import { secret } from './secret.ts';
import type { TestService } from './service.ts';

/** A member of a test, with a browser that is signed in. */
export interface TestMember {
  readonly member: Member;
  readonly password: string;
  readonly cookie: string;
  readonly sessionId: string;
  readonly browser: PlainBrowser;
}

let count = 0;

/** A new member, who was never in any browser. */
export async function newMember(db: Database, role: MemberRole, password = secret()): Promise<Member> {
  const id = newId('mem', Date.now());
  return db
    .insertInto('members')
    .values({
      id,
      organization_id: ORGANIZATION_ID,
      role,
      email: `${id}@example.com`,
      name: `${role} ${++count}`,
      password_hash: quickHash(password),
      created_at: new Date(),
    })
    .returning(MEMBER_FIELDS)
    .executeTakeFirstOrThrow();
}

/** The people of a service. */
export function peopleOf({ db, rooms, url }: TestService) {
  /** Each browser uses a different address, because attempts are counted by address. */
  const browser = (): PlainBrowser => {
    // Files share this module, so a last byte alone would not do.
    count++;
    return new PlainBrowser(url, { 'x-forwarded-for': `198.18.${count >> 8}.${count & 255}` });
  };

  /** A new member in a browser that is signed in. */
  async function signedIn(role: MemberRole): Promise<TestMember> {
    const password = secret();
    const member = await newMember(db, role, password);
    const cookie = await rooms.people.sessions.create(member);
    const session = await rooms.people.sessions.resolve(cookie);
    const client = browser();
    client.cookies.set('dashboard', cookie);
    return { member, password, cookie, sessionId: session?.id ?? '', browser: client };
  }

  return {
    browser,
    newMember: (role: MemberRole, password?: string): Promise<Member> => newMember(db, role, password),
    signedIn,
  };
}
