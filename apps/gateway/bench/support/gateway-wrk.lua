-- wrk's part of the topic gateway. Arguments: method, bytes of the body's JSON text as it is sent, prefix of the
-- idempotency keys (empty: no keys), targets with blanks between them, which take turns, then names and values of
-- fields. Prints one line of JSON at the end.
function init(args)
  local prefix = args[3]
  wrk.method = args[1]
  if args[2] ~= "" then wrk.body = args[2] end
  for i = 5, #args, 2 do wrk.headers[args[i]] = args[i + 1] end
  local targets, requests = {}, {}
  for target in args[4]:gmatch("%S+") do
    targets[#targets + 1] = target
    requests[#requests + 1] = wrk.format(nil, target)
  end
  local count = 0
  request = function()
    count = count + 1
    local i = count % #targets + 1
    if prefix == "" then return requests[i] end
    wrk.headers["idempotency-key"] = prefix .. count
    return wrk.format(nil, targets[i])
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
