/** The command line itself is wrong; exit code 2. */
export class UsageError extends Error {}

/** What `headgate --help` prints. */
export const USAGE = `headgate: a gateway with rate limits and idempotency keys

  headgate serve [--config FILE] [--watch] [--host H] [--port N] [--admin-port N]
                 [--upstream URL] [--store S]
      Runs the gateway. Without --config it runs a demonstration with a mock provider,
      and prints commands to try. SIGHUP reloads the config.
  headgate check --config FILE [--host H] [--port N] [--admin-port N] [--upstream URL] [--store S]
      Lists every error in a config (exit code 2). For a valid config it prints
      warnings, the upstream of each route, and the limits of each provider and route.
  headgate doctor --config FILE [--store S]
      Checks the store of a config: whether it can be reached, its version and clock, and
      whether it stores what it must and allows what the gateway needs (exit code 1 if not).
  headgate migrate --config FILE [--store S] [--print]
      Creates or updates the schema of a store in PostgreSQL. --print prints the SQL that
      creates it, for migration tools and other users of the database.
  headgate health [--config FILE [--host H] [--port N] [--admin-port N] | --url URL]
                  [--timeout MS]
      Asks a running gateway whether it is ready: GET /readyz on the admin listener
      of the config, or on the main one without admin (exit code 1 if it is not).
  headgate limits list|get|put|reset|history|export --admin URL [--token-file FILE]
                  [--account A | --provider P | --plan P] [--route R]
      Shows and changes limits of running gateways over the Admin API, and prints its answer.
      limits put takes windows, such as 10/1m 400/1d, or recommended. Flags of changes:
      --reason TEXT, --if-version N, --dry-run, --wait; of put also --for-ms MS, --confirm.
      HEADGATE_ADMIN_URL and HEADGATE_ADMIN_TOKEN are the defaults.
  headgate limits block --account A [--route R] --for-ms MS [--reset] [--reason TEXT]
  headgate limits unblock|blocked --account A [--route R]
      Blocks an account, or one of its routes, in running gateways; lifts or shows the block.
      --reset also empties its windows, so that it starts afresh when the block ends.
  headgate simulate --config FILE [--candidate FILE] --trace LOG [--html FILE] [--json]
                    [--max-newly-rejected 0.1%]
      Lets the requests of a log pass the limits of both configs, and says who would be newly
      rejected. LOG may be compressed by gzip; - is standard input. Exit code 3 if more requests
      are newly rejected than the last flag allows.
  headgate recommend --config FILE --trace LOG --windows 1m,1d [--keep 99.9%]
                     [--by requests|accounts] [--json]
      Finds the smallest limits that would have rejected no more of a log.
      Flags of both: --format auto|headgate|combined|json, --account query.account_id (or path.NAME,
      field.NAME, remote_addr, remote_user), --map at=ts,method=m,path=p, --sort 10s.
  headgate --help | --version

  --config FILE    the config, one JSON file; its JSON Schema is apps/gateway/docs/config.schema.json
  --watch          reloads the config when its file changes
  --host H         address to listen on (overrides listen.host, default 127.0.0.1)
  --port N         port to listen on, 0 for any free one (overrides listen.port, default 8080)
  --admin-port N   port of health checks and metrics (overrides admin.port; without admin in the
                   config it turns that listener on)
  --upstream URL   where requests are forwarded (overrides upstream, default http://127.0.0.1:9000)
  --store S        where counters are stored: memory, redis://[user:password@]host:port/db, rediss://…,
                   redis-cluster://host:port,host:port or postgres://user[:password]@host:port/database
                   (overrides store, default memory)
  --url URL        the gateway that health asks, such as http://127.0.0.1:8080
  --timeout MS     longest wait of health for the answer (default 2000)
`;
