import type { FastifyReply } from 'fastify';
import type { Offer } from '../people/second-factors.ts';
import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import type { Here } from './here.ts';
import { Inputs } from './inputs.ts';
import { RecoveryCodesPage } from './pages/recovery-codes-page.tsx';
import { type SecondFactorForm, SecondFactorPage } from './pages/second-factor-page.tsx';
import { PATHS } from './paths.ts';
import type { Router } from './router.ts';
import type { SignInLimit } from './sign-in-limit.ts';
import { WRONG_CODE } from './sign-in-routes.tsx';

const MESSAGES: Readonly<Record<string, string>> = { off: 'The second factor is turned off.' };

/** The second factor of the person: set-up, change, recovery codes, and turning it off. */
export function secondFactorRoutes(router: Router, { people }: Rooms, limit: SignInLimit): void {
  const { members, secondFactors } = people;

  interface Shown {
    /** Default: a new one. */
    readonly offer?: Offer | undefined;
    readonly sent?: { readonly form: SecondFactorForm; readonly inputs: Inputs };
  }

  async function show(here: Here, { offer = secondFactors.offer(here.member.id), sent }: Shown = {}) {
    const factor = await secondFactors.find(here.member.id);
    const page = (
      <SecondFactorPage here={here} factor={factor} offer={offer} sent={sent} done={here.messageIn(MESSAGES)} />
    );
    return sendPage(here.reply, page, sent === undefined ? 200 : 422);
  }

  /**
   * Compares the password and, if the member has a second factor, a code of it, which is used up. Wrong ones are faults.
   * A browser that was left open must not be a way to guess them, so attempts are counted.
   * @returns the id of the second factor; undefined: there is none
   */
  async function prove({ member }: Here, inputs: Inputs): Promise<string | undefined> {
    await limit.checkLogin(member.email);
    if ((await members.authenticate(member.email, inputs.raw('password'))) === undefined) {
      inputs.fault('password', 'The password is wrong.');
      return undefined;
    }
    await limit.forgive(member.email);
    if ((await secondFactors.find(member.id)) === undefined) return undefined;
    await limit.checkCode(member.id);
    const id = await secondFactors.use(member, inputs.raw('code'));
    if (id === undefined) inputs.fault('code', WRONG_CODE);
    else await limit.forgiveCode(member.id);
    return id;
  }

  const showCodes = (here: Here, codes: readonly string[]): FastifyReply =>
    sendPage(here.reply, <RecoveryCodesPage here={here} codes={codes} />);

  router.page(PATHS.secondFactor, 'set-up', (here) => show(here));

  router.form(PATHS.secondFactor, 'set-up', async (here) => {
    const inputs = new Inputs(here.entered);
    const sent = { form: 'set-up', inputs } as const;
    const offer = await secondFactors.openOffer(here.member.id, inputs.raw('offer'));
    if (offer === undefined) {
      inputs.fault(undefined, 'The secret expired. Here is a new one.');
      return show(here, { sent });
    }
    const step = secondFactors.stepOf(offer, inputs.raw('new_code'));
    if (step === undefined) inputs.fault('new_code', 'This code is wrong. Enter the one that the app shows now.');
    // A code of the present device is used up only if nothing else is wrong.
    const replaces = inputs.isFaulty ? undefined : await prove(here, inputs);
    if (step === undefined || inputs.isFaulty) return show(here, { offer, sent });
    return showCodes(
      here,
      await secondFactors.setUp(here.member, offer, { step, replaces, sessionId: here.sessionId }),
    );
  });

  router.form(`${PATHS.secondFactor}/recovery-codes`, 'own login', async (here) => {
    const inputs = new Inputs(here.entered);
    const id = await prove(here, inputs);
    if (inputs.isFaulty) return show(here, { sent: { form: 'codes', inputs } });
    if (id === undefined) return seeOther(here.reply, PATHS.secondFactor);
    return showCodes(here, await secondFactors.renewRecoveryCodes(here.member, id));
  });

  router.form(`${PATHS.secondFactor}/off`, 'own login', async (here) => {
    const inputs = new Inputs(here.entered);
    if (here.organization.second_factor_for === 'everything')
      inputs.fault(undefined, 'Your organization requires a second factor, so you cannot turn it off.');
    const id = inputs.isFaulty ? undefined : await prove(here, inputs);
    if (inputs.isFaulty) return show(here, { sent: { form: 'off', inputs } });
    if (id !== undefined) await secondFactors.turnOff(here.member, id);
    return seeOther(here.reply, `${PATHS.secondFactor}?done=off`);
  });
}
