-- wrk's part of the topic gateway. Arguments: method, bytes of the body's JSON text as it is sent, prefix of the
-- idempotency keys (empty: no keys), then names and values of fields. Prints one line of JSON at the end.
function init(args)
  local prefix = args[3]
  wrk.method = args[1]
  if args[2] ~= "" then wrk.body = args[2] end
  for i = 4, #args, 2 do wrk.headers[args[i]] = args[i + 1] end
  if prefix == "" then return end
  local count = 0
  request = function()
    count = count + 1
    wrk.headers["idempotency-key"] = prefix .. count
    return wrk.format()
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"p50Micros":%d,"p99Micros":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
