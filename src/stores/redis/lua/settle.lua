--[[
  Changes the counts of the window instances that a decision has charged (S13). A refund is a negative change.

  Input:
    KEYS       the record of the (account, route). If the account's routes share All methods, then the account's record.
    ARGV[1]    time in milliseconds, or '' for this server's clock
    ARGV[2]    the change: the cost in the end minus the cost that was charged
    ARGV[3]    how many of the windows, the first ones, are in KEYS[1]
    ARGV[4..]  for each window its name in the record's head (limit and duration, see consume.lua), and when the
               instance started

  Output: the number of windows that were settled. It creates no key and changes no expiry: a count is overwritten in
    place. If headgate did not write a record, the output is an error.
]]

local BYTES_PER_WINDOW = 16
local LARGEST_INTEGER = 9007199254740991

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local change = tonumber(ARGV[2])
local ownWindows = tonumber(ARGV[3])

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
  for i = 1, (#ARGV - 3) / 2 do
    local isInRecord = (i <= ownWindows) == (record == 1)
    if isInRecord and ARGV[2 + i * 2] == name and tonumber(ARGV[3 + i * 2]) == start then return true end
  end
  return false
end

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
      settled = settled + 1
    end
    at = at + BYTES_PER_WINDOW
  end
  return settled
end

local total = 0
for record, key in ipairs(KEYS) do
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
return total
