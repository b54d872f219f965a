/** What the form of a limit sends: the forms of all limits have one address. */
export const limitForm = (html: string, route: string): Record<string, string> => {
  const forms = [...html.matchAll(/<form method="post" action="[^"]*\/preview"[^>]*>(.*?)<\/form>/gs)];
  const form = forms.map(([, content = '']) => content).find((content) => content.includes(`value="${route}"`)) ?? '';
  return Object.fromEntries(
    [...form.matchAll(/<input [^>]*name="([^"]*)"[^>]*>/g)].map(([input, name = '']) => [
      name,
      / value="([^"]*)"/.exec(input)?.[1] ?? '',
    ]),
  );
};
