export const GET = () => new Response('got');
