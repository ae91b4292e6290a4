-- Remove lost members, set members draining, raise the epoch and close the gate.
-- KEYS: query, members, departed    ARGV: incarnation, number of lost, lost..., draining...
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return refusal end
local lost = tonumber(ARGV[2])
for at = 3, 2 + lost do
  local member = call('HGET', KEYS[2], ARGV[at])
  if member then
    local announced = string.match(member, '([01])$')
    local strained = call('HDEL', KEYS[1], 'strained ' .. ARGV[at]) == 1
    call('HSET', KEYS[3], ARGV[at], strained and announced == '0' and '2' or announced)
    call('HDEL', KEYS[2], ARGV[at])
  end
end
for at = 3 + lost, #ARGV do
  local member = call('HGET', KEYS[2], ARGV[at])
  if member then call('HSET', KEYS[2], ARGV[at], string.match(member, '^(%d+)') .. ' 1') end
end
call('HINCRBY', KEYS[1], 'epoch', 1)
call('HINCRBY', KEYS[1], 'version', 1)
call('HSET', KEYS[1], 'gate', 0)
return 'done'
