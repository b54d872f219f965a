import { fail } from '@sveltejs/kit';

let runs = 0;

export const actions = {
  default: async ({ request }) => {
    const run = ++runs;
    const form = await request.formData();
    return form.get('to') === null ? fail(422, { run }) : { run };
  },
};
