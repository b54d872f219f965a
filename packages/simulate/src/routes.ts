/**
 * Route templates such as `GET /chats/{chat_id}`, and the tree that finds the one of a request. The gateway and the
 * simulation read routes by the same rules.
 * @module headgate-simulate/routes
 */

export { parametersOf, parseTemplate, type RouteTemplate, type Segment, shapeOf } from './route-template.ts';
export { createRouteTree, type LookUp } from './route-tree.ts';
