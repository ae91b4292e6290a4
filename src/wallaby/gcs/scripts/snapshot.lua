-- All of a query's state, read at one moment; its records only if asked for, by tests and repair. Their keys
-- depend on the query's channels and share its hash tag.
-- KEYS: query, members, departed, channels, delivered, rereads, claims, splits,
--       records (the beginning of their names)
-- ARGV: incarnation, 1 with records or 0 without
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return {refusal} end
local channels = call('HGETALL', KEYS[4])
local records = {}
for at = 1, ARGV[2] == '1' and #channels or 0, 2 do
  records[#records + 1] = channels[at]
  records[#records + 1] = call('LRANGE', KEYS[9] .. ':' .. channels[at], 0, -1)
end
return {
  'done',
  call('HGETALL', KEYS[1]),
  call('HGETALL', KEYS[2]),
  call('HGETALL', KEYS[3]),
  channels,
  call('HGETALL', KEYS[5]),
  call('LRANGE', KEYS[6], 0, -1),
  call('HGETALL', KEYS[7]),
  call('HGETALL', KEYS[8]),
  records,
}
