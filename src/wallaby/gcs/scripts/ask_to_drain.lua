-- Note that a worker is about to leave.
-- KEYS: workers    ARGV: worker
local known = call('HGET', KEYS[1], ARGV[1])
if not known then return 0 end
local order, address = string.match(known, '^(%d+) [01] (.*)$')
call('HSET', KEYS[1], ARGV[1], order .. ' 1 ' .. address)
return 1
