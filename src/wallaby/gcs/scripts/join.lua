-- Make a worker a member.
-- KEYS: query, members, departed    ARGV: incarnation, worker
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return refusal end
local worker = ARGV[2]
if call('HEXISTS', KEYS[3], worker) == 1 then return 'expelled' end
if call('HEXISTS', KEYS[2], worker) == 1 then return 'already' end
call('HSET', KEYS[2], worker, int(call('HINCRBY', KEYS[1], 'order', 1)) .. ' 0')
call('HINCRBY', KEYS[1], 'version', 1)
return 'done'
