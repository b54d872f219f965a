--[[
  Sets, lifts or reads a block (S21), or changes a cooldown (S30).

  Input:
    KEYS[1]  the blocks of an account
    KEYS[2]  to set a block of a route and delete its counters: the record of the (account, route)
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  what is blocked: 'a' for the account, 'r:' and the route for one of its routes
    ARGV[3]  how long from now on, in milliseconds; '0' lifts the block; '' only reads; 'start', 'probe' or 'end' does
             to the cooldown of what is blocked what core/cooldown.ts says
    ARGV[4]  to set a block: the reason, in JSON
    ARGV[5]  to set a block: most routes of an account that are blocked
    ARGV[6]  to delete the counters too: the longest duration of a window, in milliseconds; else absent. To change a
             cooldown, a list of numbers in JSON; times are in milliseconds:
               start   how long the provider asks for, or -1; the first pause if it does not; the longest doubled pause;
                       the longest pause; 1 of the request that tries, else 0; the largest number in a row; how long the
                       mark stays after the pause
               probe   how long the others are blocked at a time; how long the request may try; how long the mark stays
                       after that
               end     none

  Output: of a cooldown, its state, a space, and the length of the pause that starts. When it reads, a list in JSON of the milliseconds until the block of the account or of the route ends,
    whichever ends last, and its reason; '' without a block. Otherwise 1, or 0 if the account has no room for another
    route. If headgate did not write the value, the output is an error.

  Value: a JSON object. For each block what is blocked, then a list: when the block ends, as text because cjson rounds
    long numbers, and the reason, as its JSON. The key expires with the block that ends last.
    The names of an account's records are not known here, so its counters are deleted by a mark, whose name is '-' and
    whose list has the same form: when the mark is needed no longer, and its time. Every instance that started by then
    is over, in each script.
    The mark of a cooldown has the name '?' and what is blocked. Its list has the same form: its end, and in quotes how
    many answers in a row were refusals, a space, and until when a request tries.
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

-- Writes the blocks. Returns whether the account has room for another route.
local function writeBlocks(isAdded)
  local values, routes, marks, ends = {}, 0, 0, now
  for name, block in pairs(blocks) do
    values[name] = { string.format('%.0f', block[1]), block[2] }
    ends = math.max(ends, block[1])
    local kind = string.sub(name, 1, 1)
    if kind == 'r' then routes = routes + 1 elseif kind == '?' then marks = marks + 1 end
  end
  if ends == now then
    redis.call('DEL', key)
  elseif isAdded and math.max(routes, marks) > ARGV[5] + 0 then
    return false
  else
    if KEYS[2] then redis.call('DEL', KEYS[2]) end
    redis.call('SET', key, cjson.encode(values), 'PX', string.format('%.0f', math.max(minExpiry, ends - now)))
  end
  return true
end

-- Changes the cooldown. Returns its state, the length of the pause, and whether nothing changed.
local function changeCooldown(kind, numbers)
  local name, reason = '?' .. what, ARGV[4]
  local block, mark = blocks[what], blocks[name]
  local inARow, probeUntil = string.match(mark and mark[2] or '"0 0"', '^"(%d+) (%d+)"$')
  if kind == 'start' then
    local pauseMs, defaultMs, doubledMs, maxMs, isProbe, most, markMs = unpack(numbers)
    if block and not (isProbe == 1 and block[2] == reason) then return 'blocked', 0, true end
    if pauseMs < 0 then pauseMs = math.min(defaultMs * 2 ^ inARow, doubledMs) end
    pauseMs = math.min(pauseMs, maxMs)
    blocks[what] = { now + pauseMs, reason }
    blocks[name] = { now + pauseMs + markMs, string.format('"%.0f 0"', math.min(inARow + 1, most)) }
    return 'started', pauseMs
  end
  if not mark then return 'open', 0, true end
  if kind == 'end' then
    blocks[name] = nil
    if block and block[2] == reason then blocks[what] = nil end
    return 'open', 0
  end
  if block then return 'blocked', 0, true end
  probeUntil = probeUntil + 0
  if probeUntil > 0 and probeUntil <= now then
    blocks[name] = nil
    return 'open', 0
  end
  local blockMs, probeMs, markMs = unpack(numbers)
  blocks[what] = { now + blockMs, reason }
  if probeUntil > now then return 'blocked', 0 end
  blocks[name] = { now + probeMs + markMs, string.format('"%s %.0f"', inARow, now + probeMs) }
  return 'probe', 0
end

if forMs == 'start' or forMs == 'probe' or forMs == 'end' then
  local state, pauseMs, isUnchanged = changeCooldown(forMs, cjson.decode(ARGV[6]))
  if not isUnchanged and not writeBlocks(forMs == 'start') then return 'full 0' end
  return string.format('%s %.0f', state, pauseMs)
end

blocks[what] = forMs ~= '0' and { now + forMs, ARGV[4] } or nil
if ARGV[6] and not KEYS[2] then blocks['-'] = { now + math.max(1, ARGV[6]), string.format('%.0f', now) } end
return writeBlocks(forMs ~= '0') and 1 or 0
