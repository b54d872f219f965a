import type {} from 'headgate-testbed/redis-servers';
