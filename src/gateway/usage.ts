/** What `headgate --help` prints. */
export const USAGE = `headgate: a rate limiting gateway

  headgate serve [--config FILE] [--host H] [--port N] [--upstream URL] [--store memory]
      Runs the gateway. Without --config it runs a demonstration with a provider of its own
      and prints commands to try.
  headgate check --config FILE [--host H] [--port N] [--upstream URL] [--store memory]
      Says everything that is wrong with a config (exit code 2), or prints the limits that
      it comes to for each provider and route.
  headgate --help | --version

  --config FILE    the config, one JSON file; its JSON Schema is docs/config.schema.json
  --host H         address to listen on           (wins over listen.host, default 127.0.0.1)
  --port N         port to listen on, 0: any free (wins over listen.port, default 8080)
  --upstream URL   where requests go              (wins over upstream, default http://127.0.0.1:9000)
  --store S        where counters live            (wins over store, default memory)
`;
