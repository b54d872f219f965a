--[[
  Changes the counts of the window instances that decisions have charged (S13). A refund is a negative change. One call
  can carry the settlements of several decisions, which do not affect each other.

  Input:
    KEYS     for each settlement the record of its (account, route). If the account's routes share All methods, then the
             account's record. With a receipt, then the settled receipts of the account.
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  a list in JSON: for each settlement a list of
               the number of its records, 1 or 2
               how many of its windows, the first ones, are in the first record
               the change: the cost in the end minus the cost that was charged
               the receipt of the decision, '' without one
               the last millisecond in which it may change something
               when the decision was made, if it is undone: instances that started then and whose count becomes 0 are
               removed (S31); else ''
               then for each window its name in the record's head (limit and duration, see consume.lua), and when the
               instance started

  Output: one string: for each settlement a number, with commas between them:
      the number of windows that were settled; 0 if the receipt was settled before, or if it is too late
      -1 if there is no room for the receipt: nothing was changed
      -2 or less if headgate did not write one of its keys: -1 minus the number of the key
    It creates no record and changes no expiry of one: a count is overwritten in place. An instance that is removed
    is given a start with which it is over at any time.

  Settled receipts: a sorted set. The score of each is the time from which on it changes nothing anyway: the last window
  that was settled with it is over, or it is too late for it (S37, S32).
]]

local BYTES_PER_WINDOW = 16
local LARGEST_INTEGER = 9007199254740991
local MAX_RECEIPTS = 65536
local NO_ROOM = -1

local now, minExpiry = tonumber(ARGV[1]), 3600000
if not now then
  local time = redis.call('TIME')
  now, minExpiry = time[1] * 1000 + math.floor(time[2] / 1000), 1
end

-- When the counters of an account were last deleted by a mark (see block.lua): instances that started by then are over.
local markedAccount, mark
local function markOf(record)
  local account = string.match(record, '^.*}:')
  if account == markedAccount then return mark end
  markedAccount, mark = account, -math.huge
  local packed = redis.pcall('GET', account)
  if type(packed) == 'string' then
    local isJson, blocks = pcall(cjson.decode, packed)
    local found = isJson and type(blocks) == 'table' and blocks['-']
    local time = type(found) == 'table' and tonumber(found[2])
    if time and time <= now then mark = time end
  end
  return mark
end

--[[
  Settles the windows of a record.

  Input:
    key     the record's key
    packed  the record
    change  is added to the counts
    starts  for each name of a window the starts of its instances that were charged
    mark    instances that started by then are over
    undone  instances that started then are removed if their count becomes 0; '' if none
  Output: the number of windows that were settled, and when the last of them ends; nil if headgate did not write the
    record
]]
local function settleRecord(key, packed, change, starts, mark, undone)
  local bar = string.find(packed, '|', 1, true)
  if not bar then return nil end
  local at, settled, ends = bar + 1, 0, now
  for name in string.gmatch(string.sub(packed, 1, bar - 1), '[ra]%d+') do
    if at + BYTES_PER_WINDOW - 1 > #packed then return nil end
    local start, count = struct.unpack('<dd', packed, at)
    -- Starts are not checked: a wrong start belongs to no charge.
    if not (count >= 0 and count <= LARGEST_INTEGER and count % 1 == 0) then return nil end
    local isCharged = false
    for _, charged in ipairs(starts[name] or {}) do isCharged = isCharged or charged == start end
    local over = start + tonumber(string.sub(name, 2))
    if isCharged and start <= now and now < over and start > mark then
      local after = math.min(LARGEST_INTEGER, math.max(0, count + change))
      if after == 0 and start == undone then start = -LARGEST_INTEGER end
      redis.call('SETRANGE', key, at - 1, struct.pack('<dd', start, after))
      settled, ends = settled + 1, math.max(ends, over)
    end
    at = at + BYTES_PER_WINDOW
  end
  return settled, ends
end

--[[
  Makes room for a receipt.

  Output: nil if the settlement may go on; else what the reply says about it, and an error of the server
]]
local function checkReceipt(key, number, receipt)
  local removed = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
  if type(removed) == 'table' then
    if string.find(removed.err, '^WRONGTYPE') then return -1 - number end
    return 0, removed
  end
  if redis.call('ZSCORE', key, receipt) then return 0 end
  if redis.call('ZCARD', key) >= MAX_RECEIPTS then return NO_ROOM end
end

-- Settles one decision, whose keys begin after `before`. Returns what the reply says about it, and an error of the server.
local function settle(settlement, before)
  local records, ownWindows, change, receipt, lastMs, undone = unpack(settlement, 1, 6)
  local receipts = receipt ~= '' and KEYS[before + records + 1]
  if now > lastMs then return 0 end
  if receipts then
    local reply, failure = checkReceipt(receipts, records + 1, receipt)
    if reply then return reply, failure end
  end
  local mark, total, ends, foreign = markOf(KEYS[before + 1]), 0, now, nil
  for record = 1, records do
    local starts = {}
    for i = 7, #settlement, 2 do
      local name = settlement[i]
      if ((i - 5) / 2 <= ownWindows) == (record == 1) then
        starts[name] = starts[name] or {}
        table.insert(starts[name], settlement[i + 1])
      end
    end
    local key = KEYS[before + record]
    local packed, settled, recordEnds = redis.pcall('GET', key), 0, now
    if type(packed) == 'table' then
      if not string.find(packed.err, '^WRONGTYPE') then return 0, packed end
      settled = nil
    elseif packed then
      settled, recordEnds = settleRecord(key, packed, change, starts, mark, undone)
    end
    if settled then
      total, ends = total + settled, math.max(ends, recordEnds)
    else
      foreign = foreign or record
    end
  end
  if receipts and total > 0 then
    local score = math.min(ends, lastMs + 1)
    redis.call('ZADD', receipts, string.format('%.0f', score), receipt)
    local expiry = math.max(minExpiry, score - now)
    if redis.call('PTTL', receipts) < expiry then redis.call('PEXPIRE', receipts, string.format('%.0f', expiry)) end
  end
  return foreign and -1 - foreign or total
end

local replies, before = {}, 0
for i, settlement in ipairs(cjson.decode(ARGV[2])) do
  local reply, failure = settle(settlement, before)
  if failure then return failure end
  replies[i] = string.format('%.0f', reply)
  before = before + settlement[1] + (settlement[4] == '' and 0 or 1)
end
return table.concat(replies, ',')
