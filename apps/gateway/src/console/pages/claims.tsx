import { useState } from 'preact/hooks';
import { ClaimCard } from '../claims/claim-card.tsx';
import { MetOrphans } from '../claims/met-orphans.tsx';
import { Scan } from '../claims/scan.tsx';
import { Field } from '../parts/field.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { goTo, href, route } from '../route.ts';
import { may } from '../session.ts';

/** The claims of idempotency keys: one of them, and those that need an operator. */
export function ClaimsPage() {
  const { query } = route.value;
  const application = query.get('application') ?? '';
  const key = query.get('key') ?? '';
  const name = JSON.stringify([application, key]);
  return (
    <>
      <PageTitle title="Claims" />
      <LookUp key={`look-up ${name}`} application={application} idempotencyKey={key} />
      {application !== '' && key !== '' && <ClaimCard key={name} application={application} idempotencyKey={key} />}
      <MetOrphans />
      {may('operator') && <Scan />}
    </>
  );
}

function LookUp({ application, idempotencyKey }: { application: string; idempotencyKey: string }) {
  const [ofApplication, setApplication] = useState(application);
  const [ofKey, setKey] = useState(idempotencyKey);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    goTo(href('claims', undefined, { application: ofApplication, key: ofKey }));
  };
  return (
    <section class="card" aria-labelledby="look-up">
      <h2 id="look-up">Look up a claim</h2>
      <form class="inline" onSubmit={submit}>
        <Field label="Application" autocomplete="off" required value={ofApplication} onValue={setApplication} />
        <Field label="Idempotency key" autocomplete="off" required value={ofKey} onValue={setKey} />
        <button type="submit">Look up</button>
      </form>
    </section>
  );
}
