--[[
  Notes which claims of a scope are dispatched and have no outcome, so that they can be counted.

  Input:
    KEYS[1]  the scope's claims: a sorted set of idempotency keys, by the time when they were noted
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  most claims
    ARGV[3]  how many of the oldest claims are returned, at most
    ARGV[4]  how many of the keys that follow are added; the others are removed
    then     the keys

  Output: if there are more claims than ARGV[2], how many more, and the oldest claims; else an empty list
]]

local now = ARGV[1]
if now == '' then now = redis.call('TIME')[1] .. '000' end

local added = tonumber(ARGV[4])
for i = 5, #ARGV do
  if i < 5 + added then redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i])
  else redis.call('ZREM', KEYS[1], ARGV[i]) end
end
local tooMany = redis.call('ZCARD', KEYS[1]) - ARGV[2]
if tooMany <= 0 then return {} end
return { tooMany, unpack(redis.call('ZRANGE', KEYS[1], 0, ARGV[3] - 1)) }
