-- The payload that was submitted with a query for its workers.
-- KEYS: query, payload    ARGV: incarnation
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return {refusal} end
return {'done', call('GET', KEYS[2])}
