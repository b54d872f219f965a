/** What `headgate --help` prints. */
export const USAGE = `headgate: a rate limiting gateway

  headgate serve [--config FILE] [--host H] [--port N] [--upstream URL] [--store S]
      Runs the gateway. Without --config it runs a demonstration with a provider of its own
      and prints commands to try.
  headgate check --config FILE [--host H] [--port N] [--upstream URL] [--store S]
      Says everything that is wrong with a config (exit code 2), or prints the limits that
      it comes to for each provider and route.
  headgate doctor --config FILE [--store S]
      Looks at the store of a config: reachable, version, eviction, clock, scripts (exit code 1 for a fault).
  headgate --help | --version

  --config FILE    the config, one JSON file; its JSON Schema is docs/config.schema.json
  --host H         address to listen on           (wins over listen.host, default 127.0.0.1)
  --port N         port to listen on, 0: any free (wins over listen.port, default 8080)
  --upstream URL   where requests go              (wins over upstream, default http://127.0.0.1:9000)
  --store S        where counters live: memory, redis://[user:password@]host:port/db, rediss://…
                   or redis-cluster://host:port,host:port (wins over store, default memory)
`;
