/**
 * The operation that a route is: `POST /api/v1/chats/:id`. A HEAD is counted as the GET that it asks the head of: it would be an allowance of
 * its own otherwise.
 */
export function routeName(method: string | undefined, template: string): string {
  const path = template.length > 1 && template.endsWith('/') ? template.slice(0, -1) : template;
  return `${method === 'HEAD' ? 'GET' : method} ${path}`;
}
