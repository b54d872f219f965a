--[[
  Lists entries of the history, newest first, or the processes.

  Input:
    KEYS[1]  the history, or the processes; see read.lua
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  of entries the last version, or '+'; '' for processes
    ARGV[3]  of entries their greatest number. After about a megabyte there are fewer, because a server that makes a larger
             reply serves no decision meanwhile; but one at least, if there is one

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
local from, most, bytes, page = ARGV[2], tonumber(ARGV[3]), 0, 20
while #list <= most and bytes < 1048576 do
  local entries = redis.call('XREVRANGE', KEYS[1], from, '-', 'COUNT', math.min(page, most + 1 - #list))
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    list[#list + 1] = entry[2][4]
    bytes = bytes + #entry[2][4]
  end
  from = string.format('%.0f-0', string.match(entries[#entries][1], '^%d+') - 1)
end
return list
