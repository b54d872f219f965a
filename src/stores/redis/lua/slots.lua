--[[
  Holds and releases slots of requests in flight (S29).

  Input:
    KEYS     for each command the sets of the limits that count its slot: the route's own limit, All methods
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  a list in JSON: for each command a list of the lease in milliseconds, the slot's token, and for each of its
             sets the most members that it may have. With a lease of 0, the slot is released; otherwise it is taken, or
             its lease is renewed

  Output: one string: for each command, with commas between them:
      '1' if the slot is held, or '0', then for each of its sets ':' and its number of members
      '-' and the number of a key of the command that headgate did not write: nothing was changed

  Set of a limit: a sorted set of tokens. The score of each is the end of its lease. The key expires with the lease that
  ends last.
]]

local now, minExpiry = tonumber(ARGV[1]), 3600000
if not now then
  local time = redis.call('TIME')
  now, minExpiry = time[1] * 1000 + math.floor(time[2] / 1000), 1
end
local time = string.format('%.0f', now)

-- Holds a slot, or releases it. Returns the command's part of the reply, and an error of the server.
local function run(command, before)
  local leaseMs, token = command[1], command[2]
  local sets, isHeld, counts, found = #command - 2, true, {}, {}
  for set = 1, sets do
    local key = KEYS[before + set]
    local removed = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', time)
    if type(removed) == 'table' then
      if string.find(removed.err, '^WRONGTYPE') then return '-' .. set end
      return nil, removed
    end
    if leaseMs == 0 then
      redis.call('ZREM', key, token)
    else
      counts[set], found[set] = redis.call('ZCARD', key), redis.call('ZSCORE', key, token)
      isHeld = isHeld and (found[set] or counts[set] < command[set + 2]) and true
    end
  end
  if leaseMs == 0 then return '0' end
  for set = 1, sets do
    if isHeld or found[set] then
      local key = KEYS[before + set]
      redis.call('ZADD', key, string.format('%.0f', now + leaseMs), token)
      if not found[set] then counts[set] = counts[set] + 1 end
      local expiry = math.max(minExpiry, leaseMs)
      if redis.call('PTTL', key) < expiry then redis.call('PEXPIRE', key, string.format('%.0f', expiry)) end
    end
  end
  return (isHeld and '1:' or '0:') .. table.concat(counts, ':')
end

local replies, before = {}, 0
for i, command in ipairs(cjson.decode(ARGV[2])) do
  local reply, failure = run(command, before)
  if failure then return failure end
  replies[i] = reply
  before = before + #command - 2
end
return table.concat(replies, ',')
