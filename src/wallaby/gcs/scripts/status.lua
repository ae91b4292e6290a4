-- The state of a query that the coordinator watches.
-- KEYS: query, members    ARGV: incarnation
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return {refusal} end
return {'done', call('HMGET', KEYS[1], 'epoch', 'gate', 'error', 'commits'), call('HGETALL', KEYS[2])}
