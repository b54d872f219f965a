--[[
  Lists entries of the history, newest first, or the processes.

  Input:
    KEYS[1]  the history, or the processes; see adjustments-read.lua
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  of entries the last version, or '+'; '' for processes
    ARGV[3]  of entries their greatest number

  Output: a list of the time, and then the JSON of each entry; or the name of each process, and then the time when it was
    heard of, version and nonce, with colons between them.
]]

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local list = { now }
if ARGV[2] == '' then
  for _, value in ipairs(redis.call('HGETALL', KEYS[1])) do list[#list + 1] = value end
  return list
end
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], ARGV[2], '-', 'COUNT', ARGV[3])) do
  list[#list + 1] = entry[2][4]
end
return list
