-- Decides requests of one plan and one cost, for any number of records, and charges those that fit (S2 to S5, S11).
--
-- KEYS       one for each check, the record of its (account, route); where All methods counts once for the account (S1) two for each: behind
--            it the record that the account's routes share
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock (S15)
-- ARGV[2]    one list in JSON (one argument, since each costs both sides more than its parsing): what each request costs; how many records a
--            check has, 1 or 2; then for each window of the plan its max and its duration
-- then       for each of a check's records: its head (the plan's windows that stand in it, in the order of checking, each as limit, 'r' or 'a',
--            and duration in milliseconds, then '|'), and how its doubles are packed: '<', then a 'd' for each
-- then       for each check, how many requests it stands for, which are decided one after the other; nothing where each stands for one
--
-- Reply: doubles in one string of bytes: the time, then for each check the start and count of each window as they were before these requests;
--        whether an instance is over is for the caller to see. It deals the requests out from that, by the same rule.
--        A NaN for the first start: the check charged nothing, since that one of its records which the first count numbers is not one of
--        headgate's. The others are as if it were not there.
--
-- A record is one string: its head, then for each window of the head start and count as doubles (little-endian). Windows of an earlier plan stay in it until they
-- are over, behind the plan's own. Its expiry is that of the window that ends last: hygiene, never truth, since every window is checked against the
-- time as well.

local LARGEST = 9007199254740991
local WINDOW_SIZE = 16

local call, pack, unpackBytes, find, sub = redis.call, struct.pack, struct.unpack, string.find, string.sub

local now, keep = ARGV[1], 1
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
  now = now - now % 1
else
  now = now + 0
  -- A clock of the caller's does not run with this server's, which counts the expiry down.
  keep = 3600000
end
local plan = cjson.decode(ARGV[2])
local cost, parts = plan[1], plan[2]

-- The usual way first, short and without a function made: one request of one record, which has the plan's head and no window that is over.
if #KEYS == 1 and not ARGV[5] then
  local packed, head, layout = redis.pcall('GET', KEYS[1]), ARGV[3], ARGV[4]
  local size = 8 * (#layout - 1)
  if type(packed) == 'string' and #packed == #head + size and find(packed, head, 1, true) == 1 then
    local doubles, active, fits = { unpackBytes(layout, packed, #head + 1) }, true, true
    for i = 1, #plan - 2, 2 do
      local count = doubles[i + 1]
      active = active and now < doubles[i] + plan[i + 3]
      fits = fits and cost <= plan[i + 2] - count
      doubles[i + 1] = count + cost
    end
    if active then
      if fits then call('SETRANGE', KEYS[1], #head, pack(layout, unpack(doubles, 1, #plan - 2))) end
      return pack('<d', now) .. sub(packed, -size)
    end
  end
end

-- Doubles of a record that is not there yet, or whose head is another plan's: those of this plan's windows, then those of other windows that are
-- to be kept, with their names. Nothing where the record is not one of ours.
local function search(packed, head, windows, from)
  local doubles, found, named, others = { names = '', ends = 0, moved = true }, {}, 0, 2 * windows
  local bar = find(packed, '|', 1, true) or 0
  local place = bar + 1
  for limit, digits in string.gmatch(sub(packed, 1, math.max(0, bar - 1)), '([ra])(%d+)') do
    if place + WINDOW_SIZE - 1 > #packed then return nil end
    local name, duration = limit .. digits, tonumber(digits)
    local start, count = unpackBytes('<dd', packed, place)
    if not (start >= -LARGEST and start <= LARGEST and duration <= LARGEST) then return nil end
    found[name] = { start, count }
    place, named = place + WINDOW_SIZE, named + #name
    if not find(head, '%f[ra]' .. name .. '%f[|ra]') and now < start + duration then
      doubles[others + 1], doubles[others + 2] = start, count
      others, doubles.names, doubles.ends = others + 2, doubles.names .. name, math.max(doubles.ends, start + duration)
    end
  end
  if packed ~= '' and (named ~= bar - 1 or place ~= #packed + 1) then return nil end
  local i = 1
  for name in string.gmatch(head, '[ra]%d+') do
    -- Over, like a window that has never had an instance.
    local pair = found[name] or { now - plan[2 * (from + i) + 2], 0 }
    doubles[2 * i - 1], doubles[2 * i] = pair[1], pair[2]
    i = i + 1
  end
  return doubles
end

-- Writes a record in which an instance was started or whose head was another: its expiry moves as well.
local function rewrite(key, head, doubles, windows, from)
  local ends = doubles.ends or 0
  if #doubles == 0 then return end
  for i = 1, windows do ends = math.max(ends, doubles[2 * i - 1] + plan[2 * (from + i) + 2]) end
  -- Behind the doubles of a record that was only read there stands where the reading ended.
  local size = 2 * windows
  if doubles.names then size = #doubles end
  if doubles.names and doubles.names ~= '' then head = sub(head, 1, -2) .. doubles.names .. '|' end
  local packed = head .. pack('<' .. string.rep('d', size), unpack(doubles, 1, size))
  call('SET', key, packed, 'PX', string.format('%.0f', math.max(keep, ends - now)))
end

local reply = { pack('<d', now) }

-- Two plain loops, whose body is the way of nearly every check: a call or a table more in them shows in the cost.
for check = 1, #KEYS / parts do
  local fitting = (ARGV[2 + 2 * parts + check] or 1) + 0
  local records, before, from, problem = {}, '', 0, nil
  for part = 1, parts do
    local key, head, layout = KEYS[(check - 1) * parts + part], ARGV[1 + 2 * part], ARGV[2 + 2 * part]
    local windows, size, doubles = (#layout - 1) / 2, 8 * (#layout - 1), nil
    local packed = redis.pcall('GET', key) or ''
    if type(packed) == 'table' then
      -- Another error is not this record's fault but the server's.
      if not find(packed.err, '^WRONGTYPE') then return packed end
    elseif #packed == #head + size and find(packed, head, 1, true) == 1 then
      before = before .. sub(packed, -size)
      doubles = { unpackBytes(layout, packed, #head + 1) }
    else
      doubles = search(packed, head, windows, from)
      if doubles then before = before .. pack(layout, unpack(doubles, 1, 2 * windows)) end
    end
    if not doubles then
      problem = part
      break
    end
    records[part] = doubles
    for i = 1, windows do
      local max, duration = plan[2 * (from + i) + 1], plan[2 * (from + i) + 2]
      if now >= doubles[2 * i - 1] + duration then
        doubles[2 * i - 1], doubles[2 * i], doubles.moved = now, 0, true
      end
      local room = max - doubles[2 * i]
      if room < fitting * cost then fitting = math.floor(room / cost) end
    end
    from = from + windows
  end
  if problem then before = pack('<dd', 0 / 0, problem) .. string.rep('\0', 8 * #plan - 32) end
  reply[check + 1] = before
  if not problem and fitting > 0 then
    from = 0
    for part = 1, parts do
      local key, layout, doubles = KEYS[(check - 1) * parts + part], ARGV[2 + 2 * part], records[part]
      local windows = (#layout - 1) / 2
      for i = 2, 2 * windows, 2 do doubles[i] = doubles[i] + fitting * cost end
      if doubles.moved then
        rewrite(key, ARGV[1 + 2 * part], doubles, windows, from)
      else
        call('SETRANGE', key, #ARGV[1 + 2 * part], pack(layout, unpack(doubles, 1, 2 * windows)))
      end
      from = from + windows
    end
  end
end
return table.concat(reply)
