-- Decides a number of equal requests against one plan, and charges those that fit (S2 to S5, S11).
--
-- KEYS[1]    the record of the (account, route)
-- KEYS[2]    the record that the account's routes share; only where All methods counts once for the account (S1)
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock (S15)
-- ARGV[2]    what each request costs
-- ARGV[3]    how many requests there are; they are decided one after the other
-- ARGV[4]    how many of the windows stand in KEYS[1], the first ones
-- ARGV[5..]  for each window, in the order of checking: limit ('r' or 'a'), max, duration in milliseconds
--
-- Reply: the time, then for each window when its active instance started ('' without one) and what it had counted,
--        all as it was before these requests. The caller deals the requests out from that, by the same rule.
--
-- A record is one string, 25 bytes a window: limit, duration, start, count. Windows of an earlier plan stay in it until they
-- are over, behind the plan's own. Its expiry is that of the window that ends last: hygiene, never truth, since every window
-- is checked against the time as well.

local WINDOW = 'c1ddd'
local WINDOW_SIZE = 25
local LARGEST = 9007199254740991

local now, keep = ARGV[1], 1
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
  -- A clock of the caller's does not run with this server's, which counts the expiry down.
  keep = 3600000
end
local cost = tonumber(ARGV[2])
local fitting = tonumber(ARGV[3])
local own = tonumber(ARGV[4])
local planned = (#ARGV - 4) / 3

-- The packed record, or '' without one. The fault of a record names it, and is no fault of the server's.
local function fault(key)
  return redis.error_reply('HEADGATE the record ' .. key .. ' is not one of headgate\'s')
end
local function read(key)
  local packed = redis.pcall('GET', key) or ''
  if type(packed) == 'table' then
    if string.find(packed.err, '^WRONGTYPE') then return nil, fault(key) end
    return nil, packed
  end
  if #packed % WINDOW_SIZE ~= 0 then return nil, fault(key) end
  return packed
end

local records = {}
for i = 1, #KEYS do
  local packed, problem = read(KEYS[i])
  if problem then return problem end
  records[i] = packed
end

-- Where a window stands in a record is nearly always where the plan has it: look there first, then everywhere.
local function find(packed, limit, duration, at)
  local l, d, s, c
  if at + WINDOW_SIZE - 1 <= #packed then
    l, d, s, c = struct.unpack(WINDOW, packed, at)
    if l == limit and d == duration then return s, c end
  end
  for place = 1, #packed, WINDOW_SIZE do
    l, d, s, c = struct.unpack(WINDOW, packed, place)
    if l == limit and d == duration then return s, c end
    -- Garbage of a fitting length would be kept, with an expiry that makes no sense.
    if (l ~= 'r' and l ~= 'a') or not (d >= 1 and d <= LARGEST and s >= -LARGEST and s <= LARGEST) then return nil, nil, true end
  end
end

local reply = { now }
local starts, counts = {}, {}
for i = 1, planned do
  local limit, max, duration = ARGV[2 + i * 3], tonumber(ARGV[3 + i * 3]), tonumber(ARGV[4 + i * 3])
  local packed, at = records[1], (i - 1) * WINDOW_SIZE + 1
  if i > own then packed, at = records[2], (i - own - 1) * WINDOW_SIZE + 1 end
  local start, count, broken = find(packed, limit, duration, at)
  if broken then return fault(KEYS[i > own and 2 or 1]) end
  if start and now < start + duration then
    reply[i * 2], reply[i * 2 + 1] = string.format('%.0f', start), string.format('%.0f', count)
  else
    start, count = now, 0
    reply[i * 2], reply[i * 2 + 1] = '', '0'
  end
  starts[i], counts[i] = start, count
  fitting = math.min(fitting, math.floor((max - count) / cost))
end
reply[1] = string.format('%.0f', now)
if fitting < 1 then return reply end

for key = 1, #KEYS do
  local from, to = 1, own
  if key == 2 then from, to = own + 1, planned end
  local packed, last, held = {}, 0, {}
  for i = from, to do
    local limit, duration = ARGV[2 + i * 3], tonumber(ARGV[4 + i * 3])
    packed[#packed + 1] = struct.pack(WINDOW, limit, duration, starts[i], counts[i] + fitting * cost)
    last = math.max(last, starts[i] + duration)
    held[limit .. duration] = true
  end
  for place = 1, #records[key], WINDOW_SIZE do
    local l, d, s, c = struct.unpack(WINDOW, records[key], place)
    if not held[l .. d] and now < s + d then
      packed[#packed + 1] = struct.pack(WINDOW, l, d, s, c)
      last = math.max(last, s + d)
    end
  end
  if #packed > 0 then redis.call('SET', KEYS[key], table.concat(packed), 'PX', string.format('%.0f', math.max(keep, last - now))) end
end
return reply
