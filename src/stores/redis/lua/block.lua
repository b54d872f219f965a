--[[
  Sets, lifts or reads a block (S21).

  Input:
    KEYS[1]  the blocks of an account
    KEYS[2]  to set a block of a route and delete its counters: the record of the (account, route)
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  what is blocked: 'a' for the account, 'r:' and the route for one of its routes
    ARGV[3]  how long from now on, in milliseconds; '0' lifts the block; '' only reads
    ARGV[4]  to set a block: the reason, in JSON
    ARGV[5]  to set a block: most routes of an account that are blocked
    ARGV[6]  to delete the counters too: the longest duration of a window, in milliseconds; else absent

  Output: when it reads, a list in JSON of the milliseconds until the block of the account or of the route ends,
    whichever ends last, and its reason; '' without a block. Otherwise 1, or 0 if the account has no room for another
    route. If headgate did not write the value, the output is an error.

  Value: a JSON object. For each block what is blocked, then a list: when the block ends, as text because cjson rounds
    long numbers, and the reason, as its JSON. The key expires with the block that ends last.
    The names of an account's records are not known here, so its counters are deleted by a mark, whose name is '-' and
    whose list has the same form: when the mark is needed no longer, and its time. Every instance that started by then
    is over, in each script.
]]

local now, minExpiry = ARGV[1], 1
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = now + 0
  -- This server counts expiries by its own clock, which the caller's clock can differ from.
  minExpiry = 3600000
end
local key, what, forMs = KEYS[1], ARGV[2], ARGV[3]

-- The blocks that are not over: for each a list of its end, as a number, and its reason. Nil for a value of others.
local function readBlocks()
  local packed, blocks = redis.call('GET', key), {}
  if not packed then return blocks end
  local isJson, values = pcall(cjson.decode, packed)
  if not isJson or type(values) ~= 'table' then return nil end
  for name, value in pairs(values) do
    local ends = type(value) == 'table' and type(value[2]) == 'string' and tonumber(value[1])
    if not ends then return nil end
    if ends > now then blocks[name] = { ends, value[2] } end
  end
  return blocks
end

local blocks = readBlocks()
if not blocks then return redis.error_reply('HEADGATE the record ' .. key .. ' was not written by headgate') end

if forMs == '' then
  local last = blocks.a
  local ofRoute = blocks[what]
  if not last or (ofRoute and ofRoute[1] > last[1]) then last = ofRoute end
  return last and string.format('[%.0f,%s]', last[1] - now, last[2]) or ''
end

blocks[what] = forMs ~= '0' and { now + forMs, ARGV[4] } or nil
if ARGV[6] and not KEYS[2] then blocks['-'] = { now + math.max(1, ARGV[6]), string.format('%.0f', now) } end
local values, routes, ends = {}, 0, now
for name, block in pairs(blocks) do
  values[name] = { string.format('%.0f', block[1]), block[2] }
  ends = math.max(ends, block[1])
  if name ~= 'a' and name ~= '-' then routes = routes + 1 end
end
if ends == now then
  redis.call('DEL', key)
elseif forMs ~= '0' and routes > ARGV[5] + 0 then
  return 0
else
  if KEYS[2] then redis.call('DEL', KEYS[2]) end
  redis.call('SET', key, cjson.encode(values), 'PX', string.format('%.0f', math.max(minExpiry, ends - now)))
end
return 1
