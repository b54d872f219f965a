import type {} from 'headgate-testbed/build';
import type {} from 'headgate-testbed/redis-servers';
