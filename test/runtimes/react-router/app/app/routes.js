import { route } from '@react-router/dev/routes';

export default [route('resource', 'routes/resource.js'), route('page', 'routes/page.jsx')];
