--[[
  Decides requests of one window set and one cost, and charges those that fit (S2 to S5, S11). core/decision.ts applies
  the same rule; the comment at the top of stores/redis/check-calls.ts explains why it is applied twice.

  A check is one (account, route) with the number of its requests, which are decided one after the other.

  Input:
    KEYS       for each check its record. If the account's routes share All methods (S1), two for each check: the
               record of the (account, route), then the one of the account.
    ARGV[1]    time in milliseconds, or '' for this server's clock (S15)
    ARGV[2]    a list in JSON: cost of a request; records per check (1 or 2); then max and duration of each window of
               the set. One argument, because an argument costs both sides more time than the parsing does.
    ARGV[3..]  for each record of a check two arguments:
                 head    the windows in the record, in the order of checking. Each is its limit ('r' or 'a') and its
                         duration in milliseconds. '|' ends the head.
                 layout  the record's numbers in the notation of struct.pack: '<', then a 'd' per number
    then       for each check the number of its requests. Left out if every check has one request. 0 only reads. -1 is
               one request that is charged although it does not fit, or is blocked (S35).

  Output: one string of doubles (little-endian): the time, then for each check the start and count of every window
    as they were before these requests. Instances that are over are included; the caller detects them.
    If headgate did not write a record of a check, the check charges nothing and the others are not affected: its
    first start is NaN, and its first count is the number of that record (1 or 2); the blocks come after the records.
    If the account or the route of a check is blocked (S21), the check charges nothing: its first start is NaN, and its
    first count is 0. If there are such checks, a list in JSON follows the doubles: for each of them a list of the
    milliseconds until the block ends, the reason, and whether the whole account is blocked.

  Record: one string: its head, then start and count of each window in the head as doubles. Windows of an earlier set
    follow the windows of this set until they are over. The key expires with the window that ends last. The expiry only
    saves memory: every window is compared with the time as well.

  Blocks of an account (see block.lua), with the mark that ends its instances, have a key in the same hash slot. It is not in KEYS: while a cluster moves the
    slot, it refuses a call if only one of its keys exists, and few accounts have a block. During that time a block may
    be unknown here.
]]

local LARGEST_INTEGER = 9007199254740991
local BYTES_PER_WINDOW = 16

local call, pack, unpackBytes = redis.call, struct.pack, struct.unpack
local find, match, sub = string.find, string.match, string.sub

local now, minExpiry = ARGV[1], 1
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
  now = now - now % 1
else
  now = now + 0
  -- This server counts expiries by its own clock, which the caller's clock can differ from.
  minExpiry = 3600000
end
local windowSet = cjson.decode(ARGV[2])
local cost, recordsPerCheck = windowSet[1], windowSet[2]

-- The part of a record's name that names the blocks of its account. Only the account's end shows '}:' behind the last
-- brace.
local ACCOUNT = '^.*}:'

-- Whether an account of the call may have blocks; nil until it is known.
local mayBeBlocked

-- The fast path: one request of one record, which contains exactly the window set's windows, none of them over, of an
-- account without blocks. It is not a function, because creating one would cost a twentieth of the whole call.
if #KEYS == 1 and not ARGV[5] then
  -- One command for both keys is cheaper than two. It returns false for a record of another type.
  local found, head, layout = redis.pcall('MGET', KEYS[1], match(KEYS[1], ACCOUNT)), ARGV[3], ARGV[4]
  local packed, size = not found[2] and found[1], 8 * (#layout - 1)
  mayBeBlocked = found[2] ~= false
  if packed and #packed == #head + size and find(packed, head, 1, true) == 1 then
    local numbers, active, fits = { unpackBytes(layout, packed, #head + 1) }, true, true
    for i = 1, #windowSet - 2, 2 do
      local start, count = numbers[i], numbers[i + 1]
      -- A start that is not a time, or a count that is not a number of requests, is left to the general case as well.
      active = active and now < start + windowSet[i + 3] and start <= now and start % 1 == 0
        and count >= 0 and count <= LARGEST_INTEGER and count % 1 == 0
      fits = fits and cost <= windowSet[i + 2] - count
      numbers[i + 1] = count + cost
    end
    if active then
      if fits then call('SETRANGE', KEYS[1], #head, pack(layout, unpack(numbers, 1, #windowSet - 2))) end
      return pack('<d', now) .. sub(packed, -size)
    end
  end
end

-- Whether an instance is over. If its start is in the future, this server's clock was set back (S15).
local function isOver(start, duration) return now >= start + duration or now < start end

-- Whether headgate wrote the start and the count of a window: both are safe integers. NaN is not even equal to itself.
local function areValid(start, count)
  return math.abs(start) <= LARGEST_INTEGER and start % 1 == 0
    and count >= 0 and count <= LARGEST_INTEGER and count % 1 == 0
end

--[[
  Reads a record that is missing, or whose windows differ from the set.

  Input:
    packed   the record, '' if it is missing
    head     its head by the set
    windows  number of windows in the head
    before   number of windows of the set before these, which are in the check's other record
    mark     instances that started by then are over; nil without a mark
  Output: list of numbers: start and count of the set's windows, then of other windows that are not over. Its fields
    `names` and `ends` are the names of these other windows and when the last of them ends; `isNew` says that the
    whole record must be written. Nil if headgate did not write the record.
]]
local function readOtherRecord(packed, head, windows, before, mark)
  local numbers, found, size = { names = '', ends = 0, isNew = true }, {}, 2 * windows
  if packed ~= '' then
    local bar, headSize = string.find(packed, '|', 1, true) or 0, 0
    local at = bar + 1
    for limit, digits in string.gmatch(string.sub(packed, 1, math.max(0, bar - 1)), '([ra])(%d+)') do
      if at + BYTES_PER_WINDOW - 1 > #packed then return nil end
      local name, duration = limit .. digits, tonumber(digits)
      local start, count = struct.unpack('<dd', packed, at)
      if not (areValid(start, count) and duration <= LARGEST_INTEGER) then return nil end
      at, headSize = at + BYTES_PER_WINDOW, headSize + #name
      if not mark or start > mark then
        found[name] = { start, count }
        if not string.find(head, '%f[ra]' .. name .. '%f[|ra]') and not isOver(start, duration) then
          numbers[size + 1], numbers[size + 2] = start, count
          size, numbers.names, numbers.ends = size + 2, numbers.names .. name, math.max(numbers.ends, start + duration)
        end
      end
    end
    if headSize ~= bar - 1 or at ~= #packed + 1 then return nil end
  end
  local i = 1
  for name in string.gmatch(head, '[ra]%d+') do
    -- A window that never began is given an instance that is over.
    local window = found[name] or { now - windowSet[2 * (before + i) + 2], 0 }
    numbers[2 * i - 1], numbers[2 * i] = window[1], window[2]
    i = i + 1
  end
  return numbers
end

--[[
  Writes a whole record, because an instance was started or the head has changed. The expiry changes with it.

  Input: the key, and what readOtherRecord has; `numbers` after the charge
]]
local function writeRecord(key, numbers, head, windows, before)
  if #numbers == 0 then return end
  local ends = numbers.ends or 0
  for i = 1, windows do ends = math.max(ends, numbers[2 * i - 1] + windowSet[2 * (before + i) + 2]) end
  -- struct.unpack appends the next offset as an extra result, which must not be written.
  local size = numbers.names and #numbers or 2 * windows
  if numbers.names and numbers.names ~= '' then head = string.sub(head, 1, -2) .. numbers.names .. '|' end
  local packed = head .. struct.pack('<' .. string.rep('d', size), unpack(numbers, 1, size))
  redis.call('SET', key, packed, 'PX', string.format('%.0f', math.max(minExpiry, ends - now)))
end

-- Whether an account of the call can be blocked: usually none is, which one command finds out. It fails while a
-- cluster moves the slot, because not all of its keys exist.
if mayBeBlocked == nil then
  local keys, last = {}, nil
  for i = 1, #KEYS, recordsPerCheck do
    -- Checks of one account often follow each other.
    if not last or find(KEYS[i], last, 1, true) ~= 1 then
      last = match(KEYS[i], ACCOUNT)
      keys[#keys + 1] = last
    end
  end
  mayBeBlocked = redis.pcall('EXISTS', unpack(keys)) ~= 0
end

-- The end of the reply: the block of each blocked check. It is not created if there can be none, and neither is the
-- function, because that is noticeable as well.
local blocked = mayBeBlocked and {}

--[[
  Finds the block of a record's account or route that ends last, and the mark of the account.

  Input: the record of the (account, route)
  Output: the block in JSON as it is in the reply, or nil; false if headgate did not write the blocks. Then the time of
    the mark, or nil. A mark in the future does not count: this server's clock was set back.
]]
local findBlock = mayBeBlocked and function(record)
  local key = match(record, ACCOUNT)
  -- An error: the value is of another type, so it is not of blocks, or the slot is moving.
  local packed = redis.pcall('GET', key)
  if type(packed) ~= 'string' then return nil end
  local isJson, blocks = pcall(cjson.decode, packed)
  if not isJson or type(blocks) ~= 'table' then return false end
  local last, found = now, nil
  for _, name in ipairs({ 'a', sub(record, #key + 1) }) do
    local block = blocks[name]
    if block then
      local ends = type(block) == 'table' and type(block[2]) == 'string' and tonumber(block[1])
      if not ends then return false end
      if ends > last then
        last, found = ends, string.format('[%.0f,%s,%s]', ends - now, block[2], tostring(name == 'a'))
      end
    end
  end
  local mark = blocks['-']
  if not mark then return found end
  mark = type(mark) == 'table' and tonumber(mark[2])
  if not mark then return false end
  return found, mark <= now and mark or nil
end

-- A part of the reply without counters, which says why there are none. Its length must be as usual.
local function unusual(number) return pack('<dd', 0 / 0, number) .. string.rep('\0', 8 * #windowSet - 32) end

--[[
  Decides and charges the requests of one check. One function, because a call or a table more per check is noticeable.

  Input:
    check     number of the check
    requests  number of its requests
  Output: the check's part of the reply; else nil and an error of the server
]]
local function decideCheck(check, requests)
  local isForced = requests < 0
  local block, mark
  if mayBeBlocked then
    block, mark = findBlock(KEYS[(check - 1) * recordsPerCheck + 1])
    if requests > 0 and block == false then return unusual(recordsPerCheck + 1) end
    if requests > 0 and block then
      blocked[#blocked + 1] = block
      return unusual(0)
    end
  end
  if isForced then requests = 1 end
  -- Read the records, start new instances, and lower `requests` to the number that fits.
  local records, reply, before = {}, '', 0
  for i = 1, recordsPerCheck do
    local head, layout = ARGV[1 + 2 * i], ARGV[2 + 2 * i]
    local windows, size, numbers = (#layout - 1) / 2, 8 * (#layout - 1), nil
    local packed = redis.pcall('GET', KEYS[(check - 1) * recordsPerCheck + i]) or ''
    if type(packed) == 'table' then
      if not find(packed.err, '^WRONGTYPE') then return nil, packed end
    elseif not mark and #packed == #head + size and find(packed, head, 1, true) == 1 then
      numbers = { unpackBytes(layout, packed, #head + 1) }
      reply = reply .. sub(packed, -size)
      for i = 1, 2 * windows, 2 do
        if numbers and not areValid(numbers[i], numbers[i + 1]) then numbers = nil end
      end
    else
      numbers = readOtherRecord(packed, head, windows, before, mark)
      if numbers then reply = reply .. pack(layout, unpack(numbers, 1, 2 * windows)) end
    end
    if not numbers then return unusual(i) end
    records[i] = numbers
    for window = 1, windows do
      local max, duration = windowSet[2 * (before + window) + 1], windowSet[2 * (before + window) + 2]
      if isOver(numbers[2 * window - 1], duration) then
        numbers[2 * window - 1], numbers[2 * window], numbers.isNew = now, 0, true
      end
      local room = max - numbers[2 * window]
      if room < requests * cost and not isForced then requests = math.floor(room / cost) end
    end
    before = before + windows
  end
  if requests <= 0 then return reply end

  -- Charge them.
  before = 0
  for i = 1, recordsPerCheck do
    local key, numbers = KEYS[(check - 1) * recordsPerCheck + i], records[i]
    local head, layout = ARGV[1 + 2 * i], ARGV[2 + 2 * i]
    local windows = (#layout - 1) / 2
    for count = 2, 2 * windows, 2 do
      local after = numbers[count] + requests * cost
      numbers[count] = after <= LARGEST_INTEGER and after or LARGEST_INTEGER
    end
    if numbers.isNew then
      writeRecord(key, numbers, head, windows, before)
    else
      call('SETRANGE', key, #head, pack(layout, unpack(numbers, 1, 2 * windows)))
    end
    before = before + windows
  end
  return reply
end

local reply = { pack('<d', now) }
for check = 1, #KEYS / recordsPerCheck do
  local part, failure = decideCheck(check, (ARGV[2 + 2 * recordsPerCheck + check] or 1) + 0)
  if failure then return failure end
  reply[check + 1] = part
end
if blocked and #blocked > 0 then reply[#reply + 1] = '[' .. table.concat(blocked, ',') .. ']' end
return table.concat(reply)
