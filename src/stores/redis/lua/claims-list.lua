--[[
  Reads claims for a list, without their owners, fingerprints and values. Changes nothing.

  Input:
    KEYS     records of claims; see claim.lua
    ARGV[1]  time in milliseconds, or '' for this server's clock

  Output: for each key a list: the time, state, generation, dispatched, inherited, milliseconds until the lease expires
    and until the retention is over, status, bytes of the value as it is packed. The list is empty if there is no claim, or
    if headgate did not write the record.
]]

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
end
local function int(number) return string.format('%.0f', number) end

-- Reads the record of a released claim.
local function readReleased(key)
  local packed = redis.pcall('GET', key)
  if type(packed) ~= 'string' then return {} end
  local generation, keptUntil = string.match(packed, '^free|(%d+)|(%-?%d+)|.')
  return { generation and 'free', generation, '0', '0', '0', keptUntil }
end

local list = {}
for i, key in ipairs(KEYS) do
  local fields = redis.pcall('HMGET', key, 'state', 'generation', 'dispatched', 'inherited', 'leaseUntil', 'keptUntil',
    'status')
  if fields.err then
    if not string.find(fields.err, '^WRONGTYPE') then return fields end
    fields = readReleased(key)
  end
  local state, generation, dispatched, inherited, leaseUntil, keptUntil, status = unpack(fields, 1, 7)
  leaseUntil, keptUntil = tonumber(leaseUntil or ''), tonumber(keptUntil or '')
  list[i] = {}
  -- A dispatched claim without an outcome stays.
  local stays = state == 'in_progress' and dispatched == '1'
  if state and leaseUntil and keptUntil and (now < keptUntil or stays) then
    local lease = 0
    if state == 'in_progress' then lease = math.max(0, leaseUntil - now) end
    local bytes = 0
    if state == 'completed' then bytes = redis.call('HSTRLEN', key, 'value') end
    list[i] = { int(now), state, generation or '', dispatched or '', inherited or '', int(lease),
      int(math.max(0, keptUntil - now)),
      status or '', int(bytes) }
  end
end
return list
