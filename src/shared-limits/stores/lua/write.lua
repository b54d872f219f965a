--[[
  Stores a change of the adjustments, or replaces all of them, if the head is still the one that the process has seen.

  Input:
    KEYS[1]  the adjustments, see read.lua
    KEYS[2]  the history
    ARGV[1]  the head that was seen: version and nonce with a colon between them; '' without a history
    ARGV[2]  the new head
    ARGV[3]  '1' if everything is replaced
    ARGV[4]  most entries of the history that are stored
    ARGV[5]  number of the entries
    ARGV[6..]  of each entry its version, its nonce and its JSON; then of each adjustment its field and its JSON, which
               is '' if it is deleted

  Output: 1, or 0 if the head is another one. Nothing was changed then.
]]

local head = redis.call('HGET', KEYS[1], '@head') or ''
if head ~= ARGV[1] then return 0 end
-- A history without adjustments belongs to a server which lost the other value.
if ARGV[3] == '1' or head == '' then redis.call('DEL', KEYS[1], KEYS[2]) end

local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local id = ARGV[at] .. '-0'
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], id, 'n', ARGV[at + 1], 'e', ARGV[at + 2])
  at = at + 3
end
for i = at, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
redis.call('HSET', KEYS[1], '@head', ARGV[2])
return 1
