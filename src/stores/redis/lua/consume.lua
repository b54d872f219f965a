-- Decides requests of one plan and one cost, for any number of records, and charges those that fit (S2 to S5, S11).
--
-- KEYS       one for each check, the record of its (account, route); where All methods counts once for the account (S1) two for each: behind
--            it the record that the account's routes share
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock (S15)
-- ARGV[2]    what each request costs
-- ARGV[3]    head of the first record: its windows in the order of checking, each as limit ('r' or 'a') and duration in milliseconds, then '|'
-- ARGV[4]    head of the shared record, or '' without one
-- ARGV[5]    how many windows the plan has, n
-- ARGV[6..]  for each window its max and its duration: 2 n numbers
-- then       for each check, how many requests it stands for; they are decided one after the other
--
-- Reply: the time, then for each check a list: for each window when its active instance started and what it had counted, all as it was before
--        these requests; a count of -1 says that no instance is active. The caller deals the requests out from that, by the same rule.
--        A string instead of a list says what is wrong with that check's record; it was not charged, and the others are as if it were not there.
--
-- A record is one string: its head, then for each window of the head start and count as doubles. Windows of an earlier plan stay in it until they
-- are over, behind the plan's own. Its expiry is that of the window that ends last: hygiene, never truth, since every window is checked against the
-- time as well.

local LARGEST = 9007199254740991
-- Clients read longer integers one digit at a time, into numbers that no longer hold them: those go as text.
local LONG = 900000000000000
local WINDOW_SIZE = 16

local now, keep = ARGV[1], 1
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
  -- A clock of the caller's does not run with this server's, which counts the expiry down.
  keep = 3600000
end
local cost, planned = tonumber(ARGV[2]), tonumber(ARGV[5])
local maxes, durations = {}, {}
for i = 1, planned do
  maxes[i], durations[i] = tonumber(ARGV[4 + 2 * i]), tonumber(ARGV[5 + 2 * i])
end
local heads = { ARGV[3] }
local last = { planned }
if ARGV[4] ~= '' then
  heads[2] = ARGV[4]
  local _, shared = string.gsub(ARGV[4], '[ra]', '')
  last = { planned - shared, planned }
end
local formats = {}
for part = 1, #heads do formats[part] = string.rep('d', 2 * (last[part] - (last[part - 1] or 0))) end

-- The fault of a record names it, and is no fault of the server's.
local function fault(key)
  return 'HEADGATE the record ' .. key .. ' is not one of headgate\'s'
end

-- Reads the doubles of a record whose head is another plan's: those of this plan's windows, and behind them what is to be kept of the others.
local function search(packed, head, from, to, values)
  local bar = string.find(packed, '|', 1, true)
  if not bar then return nil end
  local at, named, found, others = bar + 1, 0, {}, { head = '' }
  for limit, digits in string.gmatch(string.sub(packed, 1, bar - 1), '([ra])(%d+)') do
    if at + WINDOW_SIZE - 1 > #packed then return nil end
    local name = limit .. digits
    named = named + #name
    found[name] = { struct.unpack('dd', packed, at) }
    at = at + WINDOW_SIZE
    local start, duration = found[name][1], tonumber(digits)
    if not (start >= -LARGEST and start <= LARGEST and duration <= LARGEST) then return nil end
    if not string.find(head, '%f[ra]' .. name .. '%f[|ra]') and now < start + duration then
      others.head = others.head .. name
      others[#others + 1], others[#others + 2] = start, found[name][2]
      others.ends = math.max(others.ends or 0, start + duration)
    end
  end
  if named ~= bar - 1 or at ~= #packed + 1 then return nil end
  local i = from
  for name in string.gmatch(head, '[ra]%d+') do
    local pair = found[name]
    if pair then values[2 * i - 1], values[2 * i] = pair[1], pair[2] end
    i = i + 1
  end
  return others
end

-- Fills in start and count of the windows that a record holds. Returns what else it holds, or what is wrong.
local function read(key, part, values)
  local packed = redis.pcall('GET', key)
  if not packed then return nil end
  if type(packed) == 'table' then
    if string.find(packed.err, '^WRONGTYPE') then return nil, fault(key) end
    return nil, packed
  end
  local head = heads[part]
  local from, to = (last[part - 1] or 0) + 1, last[part]
  if #packed == #head + WINDOW_SIZE * (to - from + 1) and string.sub(packed, 1, #head) == head then
    local doubles = { struct.unpack(formats[part], packed, #head + 1) }
    for i = 1, 2 * (to - from + 1) do values[2 * from - 2 + i] = doubles[i] end
    return nil
  end
  local others = search(packed, head, from, to, values)
  if not others then return nil, fault(key) end
  return others
end

local function write(key, part, values, others)
  local from, to = (last[part - 1] or 0) + 1, last[part]
  if to < from and not (others and others.ends) then return end
  local ends = others and others.ends or 0
  for i = from, to do ends = math.max(ends, values[2 * i - 1] + durations[i]) end
  local packed = struct.pack(formats[part], unpack(values, 2 * from - 1, 2 * to))
  if others and others.ends then
    packed = string.sub(heads[part], 1, -2) .. others.head .. '|' .. packed .. struct.pack(string.rep('d', #others), unpack(others))
  else
    packed = heads[part] .. packed
  end
  redis.call('SET', key, packed, 'PX', math.max(keep, ends - now))
end

local function exact(number)
  if number < LONG and number > -LONG then return number end
  return string.format('%.0f', number)
end

local reply = { exact(now) }
local counted = 5 + 2 * planned
for check = 1, #KEYS / #heads do
  local values, seen, others, problem = {}, {}, {}, nil
  for part = 1, #heads do
    if not problem then others[part], problem = read(KEYS[(check - 1) * #heads + part], part, values) end
  end
  -- Not a record's fault but the server's.
  if type(problem) == 'table' then return problem end
  local fitting = tonumber(ARGV[counted + check])
  for i = 1, planned do
    local start, count = values[2 * i - 1], values[2 * i]
    if start and now < start + durations[i] then
      seen[2 * i - 1], seen[2 * i] = exact(start), exact(count)
    else
      seen[2 * i - 1], seen[2 * i] = 0, -1
      values[2 * i - 1], values[2 * i], count = now, 0, 0
    end
    fitting = math.min(fitting, math.floor((maxes[i] - count) / cost))
  end
  if problem then
    reply[check + 1] = problem
  else
    reply[check + 1] = seen
    if fitting > 0 then
      for i = 1, planned do values[2 * i] = values[2 * i] + fitting * cost end
      for part = 1, #heads do write(KEYS[(check - 1) * #heads + part], part, values, others[part]) end
    end
  end
end
return reply
