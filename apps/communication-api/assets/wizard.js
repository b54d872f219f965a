// Everything works without this script. It shows that a form is being sent, searches while the user types, and follows
// the progress of a sync.
const reset = (form) => {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll('[aria-disabled]')) button.removeAttribute('aria-disabled');
};

for (const form of document.querySelectorAll('form[method=post]'))
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = 'true';
    const { submitter } = event;
    // A link would leave the page, so only the button shows that something happens.
    submitter?.setAttribute('aria-disabled', 'true');
    if (submitter?.dataset.sending) document.getElementById('sending').textContent = submitter.dataset.sending;
  });

// The browser may show the page as it was left.
addEventListener('pageshow', ({ persisted }) => persisted && [...document.forms].forEach(reset));

const search = document.getElementById('search');
if (search) {
  const rows = [...document.querySelectorAll('[data-title]')];
  const none = document.getElementById('none');
  search.form.querySelector('button').hidden = true;
  search.form.addEventListener('submit', (event) => event.preventDefault());
  search.addEventListener('input', () => {
    const wanted = search.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.title.includes(wanted);
    none.hidden = rows.some((row) => !row.hidden);
  });
}

const repeated = document.querySelector('form[data-repeat]');
if (repeated) setTimeout(() => repeated.requestSubmit(), repeated.dataset.repeat * 1000);

const sync = document.getElementById('sync');
if (sync) {
  const bar = sync.querySelector('progress');
  const text = document.getElementById('percent');
  const ask = async () => {
    try {
      const answer = await fetch(sync.dataset.progress, { headers: { accept: 'application/json' } });
      // The page itself says what is wrong.
      if (!answer.ok) return location.reload();
      const now = await answer.json();
      bar.value = now.progress;
      if (text.textContent !== now.text) text.textContent = now.text;
      document.getElementById('leave').hidden = !now.may_leave;
      if (now.status === 'completed') return location.replace(sync.dataset.next);
    } catch {
      // Offline: the next attempt may succeed.
    }
    setTimeout(ask, 1000);
  };
  setTimeout(ask, 1000);
}
