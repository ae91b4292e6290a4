-- Report a task's own error; the first one stays.
-- KEYS: query, members    ARGV: incarnation, worker, epoch, error
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
if call('HGET', KEYS[1], 'error') ~= '' then return 'already' end
call('HSET', KEYS[1], 'error', ARGV[4])
call('HINCRBY', KEYS[1], 'version', 1)
return 'done'
