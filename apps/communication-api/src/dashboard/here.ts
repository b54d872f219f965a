import type { FastifyReply, FastifyRequest } from 'fastify';
import { FormFields } from '../api/form.ts';
import type { Application } from '../applications/applications.ts';
import { mayInOrganization, type OrganizationAction } from '../domain/member-roles.ts';
import { type DashboardPart, requiresSecondFactor } from '../domain/second-factor.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Actor } from '../people/audit-log.ts';
import { actorOf, type Member } from '../people/member.ts';
import type { MemberSession } from '../people/member-sessions.ts';
import type { Organization } from '../people/organizations.ts';
import type { Csrf } from '../wizard/csrf.ts';
import { CSRF_FIELD } from '../wizard/pages/parts.tsx';

/** The fields of a submitted form. If a field is repeated, its first value counts. */
export type Entered = ReadonlyMap<string, string>;

/** The name of the field with the id of the new row. A form that is sent twice creates the row once. */
export const NEW_ID_FIELD = '_id';

/** The parts that make a form acceptable. */
export interface FormProps {
  readonly action: string;
  readonly csrf: string;
  readonly newId?: string | undefined;
}

/** A request of a person who signed in. */
export class Here {
  constructor(
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
    private readonly session: MemberSession,
    readonly organization: Organization,
    readonly entered: Entered,
    private readonly csrf: Csrf,
  ) {}

  get sessionId(): string {
    return this.session.id;
  }

  get member(): Member {
    return this.session.member;
  }

  get hasSecondFactor(): boolean {
    return this.session.hasSecondFactor;
  }

  /** Whether the member must set up a second factor before this part of the dashboard can be used. */
  lacksSecondFactorFor(part: DashboardPart): boolean {
    return !this.hasSecondFactor && requiresSecondFactor(this.organization.second_factor_for, part);
  }

  get actor(): Actor {
    return actorOf(this.member);
  }

  may(action: OrganizationAction): boolean {
    return mayInOrganization(this.member.role, action);
  }

  /** The message about the action that was just done: the field `done` of the query names it. */
  messageIn(messages: Readonly<Record<string, string>>): string | undefined {
    const { done } = this.request.query as { readonly done?: unknown };
    return typeof done === 'string' && Object.hasOwn(messages, done) ? messages[done] : undefined;
  }

  /**
   * A form of this session.
   * @param newId the id of the row that it creates
   */
  form(action: string, newId?: string): FormProps {
    return { action, newId, csrf: this.csrf.tokenOf(this.sessionId, formName(action, newId)) };
  }

  /** Whether the form was made for this session. */
  hasFormOf(action: string): boolean {
    const name = formName(action, this.entered.get(NEW_ID_FIELD));
    return this.csrf.isValid(this.sessionId, name, this.entered.get(CSRF_FIELD));
  }
}

/** A request of a person, about one application. */
export interface HereInApplication {
  readonly here: Here;
  readonly application: Application;
}

/** The token of a form covers the id too, so a person cannot choose the ids of new rows. */
const formName = (action: string, newId: string | undefined): string =>
  newId === undefined ? action : `${action} ${newId}`;

/** @throws ServiceError 422 if the body is not a form */
export function enteredIn({ body }: FastifyRequest): Entered {
  if (!(body instanceof FormFields))
    throw new ServiceError(422, 'errors/unprocessable_entity', 'Send a form: application/x-www-form-urlencoded.');
  return new Map(body.entries.toReversed());
}

/** @throws ServiceError 403 */
export const forbid = (): never => {
  throw new ServiceError(403, 'errors/insufficient_permissions', 'Your role does not allow this.');
};

/** The address is not the address of a page, or the subject of the page does not exist. */
export class UnknownPageError extends ServiceError {
  override readonly name = 'UnknownPageError';

  constructor() {
    super(404, 'errors/resource_not_found', 'This page does not exist.');
  }
}

/** @throws UnknownPageError */
export const unknown = (): never => {
  throw new UnknownPageError();
};
