import type { FastifyReply } from 'fastify';
import { isHeadgateError } from 'headgate';
import { mayInApplication } from '../domain/member-roles.ts';
import { isProviderName, PROVIDER_NAMES } from '../domain/providers.ts';
import type { Rooms } from '../rooms.ts';
import { AccountAnswer } from './account-answer.tsx';
import { seeOther, sendPage } from './answers.tsx';
import { type HereInApplication, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { formValueOf, type LimitForm, limitLabel, readLimitForm } from './limit-form.ts';
import { type LimitTarget, ofAccount, ofProvider } from './limit-target.ts';
import { LimitViews } from './limit-views.ts';
import { ImpactOnAccount, ImpactOnProvider, LimitPreviewPage } from './pages/limit-preview-page.tsx';
import { LimitsPage } from './pages/limits-page.tsx';
import { ProviderLimitsPage } from './pages/provider-limits-page.tsx';
import { accountPath, applicationPath, providerPath } from './paths.ts';
import type { Router } from './router.ts';

/** The limits of one kind of target. */
interface LimitPages {
  /** The path of the page, with its parameters. */
  readonly path: string;
  targetOf(at: HereInApplication): Promise<LimitTarget>;
  /** @param inputs a form with faults, about the limit of `route` */
  show(
    at: HereInApplication,
    target: LimitTarget,
    faulty?: { readonly route: string | null; readonly inputs: Inputs },
    status?: number,
  ): Promise<FastifyReply>;
}

/** Limits of accounts, and of all accounts of a provider. */
export function limitRoutes(router: Router, rooms: Rooms): void {
  const { limits, limiter, people, providers } = rooms;
  const views = new LimitViews(rooms);
  const answer = new AccountAnswer(rooms);

  const ofAccounts: LimitPages = {
    path: accountPath(':application', ':account'),
    targetOf: async (at) => ofAccount(await answer.accountOf(at)),
    show: async (at, { account }, faulty, status) => {
      const form = faulty && { form: formValueOf(faulty.route), inputs: faulty.inputs };
      return answer.send(at, account ?? unknown(), form, status);
    },
  };

  const ofProviders: LimitPages = {
    path: providerPath(':application', ':provider'),
    targetOf: async ({ here, application }) => {
      const { provider } = here.request.params as { readonly provider: string };
      return isProviderName(provider) ? ofProvider(application.id, provider) : unknown();
    },
    show: async ({ here, application }, target, faulty, status = 422) => {
      const page = (
        <ProviderLimitsPage
          here={here}
          application={application}
          target={target}
          canManage={mayInApplication(here.member.role, 'manage limits', application.environment)}
          limits={await views.of(target)}
          faulty={faulty && { form: formValueOf(faulty.route), inputs: faulty.inputs }}
          isChanged={'done' in (here.request.query as object)}
        />
      );
      return sendPage(here.reply, page, faulty === undefined ? 200 : status);
    },
  };

  /** Changes a limit, if it is still the limit that the person saw. */
  async function change(at: HereInApplication, target: LimitTarget, { route, windows, seen }: LimitForm) {
    const { here, application } = at;
    const { name, account } = target;
    const subject = `${name}, ${limitLabel(route)}${windows ? `: ${windows.join(', ')}` : ''}`;
    const action = windows === null ? ('reset a limit' as const) : ('adjusted a limit' as const);
    try {
      await people.audited(here.actor, async (transaction) => {
        await limits.change(target, route, windows ?? null, { by: here.member.id, ifVersion: seen }, transaction);
        return [undefined, { action, subject, subjectId: account?.id, applicationId: application.id }];
      });
    } catch (error) {
      if (!isHeadgateError(error, 'adjustment_conflict')) throw error;
      await limits.refresh();
      return false;
    }
    return true;
  }

  for (const { path, targetOf, show } of [ofAccounts, ofProviders]) {
    // It changes nothing, but shows the effects of the change.
    router.applicationForm(`${path}/preview`, 'manage limits', async (at) => {
      const { here, application } = at;
      const target = await targetOf(at);
      const inputs = new Inputs(here.entered);
      const { route, windows, seen } = readLimitForm(inputs);
      if (windows === undefined) return show(at, target, { route, inputs });
      await limits.followOthers();
      const next = views.next(target, route, windows);
      const { account } = target;
      const impact =
        account === undefined ? (
          <ImpactOnProvider impact={await views.impact(target, route, next)} />
        ) : (
          <ImpactOnAccount windows={await views.preview(account, route, next)} />
        );
      const page = (
        <LimitPreviewPage
          here={here}
          application={application}
          target={target}
          limit={{ label: limitLabel(route), value: formValueOf(route), text: next.join(', '), seen }}
          isReset={windows === null}
        >
          {impact}
        </LimitPreviewPage>
      );
      return sendPage(here.reply, page);
    });

    router.applicationForm(`${path}/limits`, 'manage limits', async (at) => {
      const { here } = at;
      const target = await targetOf(at);
      const inputs = new Inputs(here.entered);
      const form = readLimitForm(inputs);
      const { route } = form;
      if (form.windows === undefined) return show(at, target, { route, inputs });
      if (!(await change(at, target, form))) {
        inputs.fault(
          undefined,
          'Another person changed this limit since you opened the page. It is shown as it is now. Your entry changed nothing.',
        );
        return show(at, target, { route, inputs }, 409);
      }
      await limits.refresh();
      return seeOther(here.reply, `${target.path}?done=adjusted`);
    });
  }

  router.applicationForm(accountPath(':application', ':account', 'counters'), 'manage limits', async (at) => {
    const { here, application } = at;
    const account = await answer.accountOf(at);
    const deed = { action: 'reset counters' as const, subject: account.name, subjectId: account.id };
    // In the transaction, so that nothing is emptied if the database is away, or if the person lost the role.
    await people.audited(here.actor, async () => {
      await limiter.reset({ account: account.id });
      return [undefined, { ...deed, applicationId: application.id }];
    });
    return seeOther(here.reply, `${accountPath(application.id, account.id)}?done=emptied`);
  });

  router.applicationPage(applicationPath(':application', 'limits'), 'read limits', async ({ here, application }) => {
    await limits.followOthers();
    const installed: readonly string[] = providers.linkable(application.environment).map(({ name }) => name);
    const all = PROVIDER_NAMES.map((name) => ({
      name,
      limits: limits.list({ applicationId: application.id, provider: name }),
    }));
    const shown = all.filter(
      ({ name, limits: own }) => installed.includes(name) || own.some(({ source }) => source !== 'recommended'),
    );
    return sendPage(here.reply, <LimitsPage here={here} application={application} providers={shown} />);
  });

  router.applicationPage(ofProviders.path, 'read limits', async (at) =>
    ofProviders.show(at, await ofProviders.targetOf(at)),
  );
}
