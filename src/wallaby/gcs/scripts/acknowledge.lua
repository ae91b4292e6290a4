-- Raise what is delivered over edges whose producers the worker hosts: all or none.
-- KEYS: query, members, channels, links, delivered    ARGV: incarnation, worker, epoch, then edge, count, ...
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
for at = 4, #ARGV, 2 do
  local link, producer = string.match(ARGV[at], '^(%d+)%.(%d+)%.%d+$')
  local stage = string.match(call('HGET', KEYS[4], link) or error('the query has no link ' .. link), '^%d+')
  local name = stage .. '.' .. producer
  if read_channel(call('HGET', KEYS[3], name), name).host ~= ARGV[2] then return 'not host' end
end
if raise_delivered(KEYS[5], ARGV, 4, #ARGV - 1) then call('HINCRBY', KEYS[1], 'version', 1) end
return 'done'
