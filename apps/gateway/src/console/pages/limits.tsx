import { useEffect, useState } from 'preact/hooks';
import type { Beginning } from '../limits/draft.ts';
import { ExportDialog } from '../limits/export-dialog.tsx';
import { FilterForm, filterOf } from '../limits/filter.tsx';
import { History } from '../limits/history.tsx';
import { LimitDialog, type OpenedLimit } from '../limits/limit-dialog.tsx';
import { LimitList } from '../limits/limit-list.tsx';
import { TargetForm } from '../limits/target-form.tsx';
import { Notice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { type Target, targetOf } from '../parts/target.ts';
import { href, replaceWith, route } from '../route.ts';
import { may } from '../session.ts';

/**
 * The limits of every layer, and the history of their changes. An address with `edit` opens the dialog of its limit:
 * `#/limits?account=acc_1&route=POST%20/api/v1/emails&edit=1`. With `windows`, such as `5/1m,100/1d`, it begins with them.
 */
export function LimitsPage() {
  const { name, query } = route.value;
  const [opened, setOpened] = useState<OpenedLimit>();
  const [isExporting, setExporting] = useState(false);
  const [changes, setChanges] = useState(0);
  const isHistory = name === 'history';
  const open = (target: Target, beginning: Beginning): void => setOpened({ target, beginning });
  useEffect(() => {
    const { edit, windows, ...rest } = Object.fromEntries(query);
    if (edit === undefined) return;
    // The address is without the dialog from now on, so that Back does not open it again.
    replaceWith(href('limits', name, rest));
    open(targetOf(query), windows?.split(',') ?? 'now');
  }, [query]);
  return (
    <>
      <PageTitle title={isHistory ? 'History of limits' : 'Limits'}>
        <div class="actions">
          {isHistory ? (
            <a class="button quiet" href={href('limits')}>
              Limits
            </a>
          ) : (
            <a class="button quiet" href={href('limits', 'history')}>
              History
            </a>
          )}
          <button type="button" class="quiet" onClick={() => setExporting(true)}>
            Export
          </button>
        </div>
      </PageTitle>
      {isHistory ? (
        <section class="card" aria-label="Changes">
          <History of={targetOf(query)} changes={changes} onOpen={open} />
        </section>
      ) : (
        <>
          <section class="card" aria-label="Limits">
            <FilterForm filter={filterOf(query)} />
            <LimitList filter={filterOf(query)} changes={changes} onOpen={open} />
          </section>
          {may('operator') && (
            <section class="card" aria-labelledby="another-limit">
              <h2 id="another-limit">A limit that is not listed</h2>
              <TargetForm onTarget={(target) => open(target, 'now')} />
            </section>
          )}
        </>
      )}
      {opened && !may('operator') && <Notice kind="care">Only operators may change limits.</Notice>}
      {opened && may('operator') && (
        <LimitDialog
          key={JSON.stringify(opened)}
          {...opened}
          onClose={() => setOpened(undefined)}
          onChanged={() => setChanges((last) => last + 1)}
        />
      )}
      {isExporting && <ExportDialog onClose={() => setExporting(false)} />}
    </>
  );
}
