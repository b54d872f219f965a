--[[
  Changes the counts of the window instances that a decision has charged (S13). A refund is a negative change.

  Input:
    KEYS       the record of the (account, route). If the account's routes share All methods, then the account's record.
               With a receipt, then the settled receipts of the account.
    ARGV[1]    time in milliseconds, or '' for this server's clock
    ARGV[2]    the change: the cost in the end minus the cost that was charged
    ARGV[3]    how many of the windows, the first ones, are in KEYS[1]
    ARGV[4]    the receipt of the decision, '' without one
    ARGV[5..]  for each window its name in the record's head (limit and duration, see consume.lua), and when the
               instance started

  Output: the number of windows that were settled; 0 if the receipt was settled before; -1 if there is no room for it. It
    creates no record and changes no expiry of one: a count is overwritten in place. If headgate did not write a record,
    the output is an error.

  Settled receipts: a sorted set. The score of each is when the last window that was settled with it ends (S37).
]]

local BYTES_PER_WINDOW = 16
local LARGEST_INTEGER = 9007199254740991
local MAX_RECEIPTS = 65536

local now, minExpiry = tonumber(ARGV[1]), 3600000
if not now then
  local time = redis.call('TIME')
  now, minExpiry = time[1] * 1000 + math.floor(time[2] / 1000), 1
end
local change = tonumber(ARGV[2])
local ownWindows = tonumber(ARGV[3])
local receipt, records, receipts = ARGV[4], #KEYS, nil
if receipt ~= '' then
  records, receipts = #KEYS - 1, KEYS[#KEYS]
  redis.call('ZREMRANGEBYSCORE', receipts, '-inf', string.format('%.0f', now))
  if redis.call('ZSCORE', receipts, receipt) then return 0 end
  if redis.call('ZCARD', receipts) >= MAX_RECEIPTS then return -1 end
end

-- When the counters of the account were last deleted by a mark (see block.lua): instances that started by then are over.
local mark = -math.huge
local packedBlocks = redis.pcall('GET', string.match(KEYS[1], '^.*}:'))
if type(packedBlocks) == 'string' then
  local isJson, blocks = pcall(cjson.decode, packedBlocks)
  local found = isJson and type(blocks) == 'table' and blocks['-']
  local time = type(found) == 'table' and tonumber(found[2])
  if time and time <= now then mark = time end
end

--[[
  Whether a window was charged by the decision, in an instance that is still active.

  Input:
    record  1 or 2, the number of the window's record
    name    its name in the head
    start   when its active instance started
]]
local function wasCharged(record, name, start)
  if now >= start + tonumber(string.sub(name, 2)) or now < start or start <= mark then return false end
  for i = 1, (#ARGV - 4) / 2 do
    local isInRecord = (i <= ownWindows) == (record == 1)
    if isInRecord and ARGV[3 + i * 2] == name and tonumber(ARGV[4 + i * 2]) == start then return true end
  end
  return false
end

-- When the last of the settled windows ends.
local ends = now

--[[
  Settles the windows of a record.

  Input:
    key     the record's key
    record  1 or 2, its number
    packed  the record
  Output: the number of windows that were settled; nil if headgate did not write the record
]]
local function settleRecord(key, record, packed)
  local bar = string.find(packed, '|', 1, true)
  if not bar then return nil end
  local at, settled = bar + 1, 0
  for name in string.gmatch(string.sub(packed, 1, bar - 1), '[ra]%d+') do
    if at + BYTES_PER_WINDOW - 1 > #packed then return nil end
    local start, count = struct.unpack('<dd', packed, at)
    -- Starts are not checked: a wrong start belongs to no charge.
    if not (count >= 0 and count <= LARGEST_INTEGER and count % 1 == 0) then return nil end
    if wasCharged(record, name, start) then
      local after = math.min(LARGEST_INTEGER, math.max(0, count + change))
      redis.call('SETRANGE', key, at + 7, struct.pack('<d', after))
      settled, ends = settled + 1, math.max(ends, start + tonumber(string.sub(name, 2)))
    end
    at = at + BYTES_PER_WINDOW
  end
  return settled
end

local total = 0
for record = 1, records do
  local key = KEYS[record]
  local packed, settled = redis.pcall('GET', key), 0
  if type(packed) == 'table' then
    if not string.find(packed.err, '^WRONGTYPE') then return packed end
    settled = nil
  elseif packed then
    settled = settleRecord(key, record, packed)
  end
  if not settled then
    return redis.error_reply('HEADGATE the record ' .. key .. ' was not written by headgate')
  end
  total = total + settled
end
if receipts and total > 0 then
  redis.call('ZADD', receipts, string.format('%.0f', ends), receipt)
  local last = redis.call('ZREVRANGE', receipts, 0, 0, 'WITHSCORES')[2]
  redis.call('PEXPIRE', receipts, string.format('%.0f', math.max(minExpiry, last - now)))
end
return total
