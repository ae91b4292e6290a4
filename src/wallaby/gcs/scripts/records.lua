-- The committed records of a channel that the worker hosts.
-- KEYS: query, members, channels, records of the channel    ARGV: incarnation, worker, epoch, channel
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if refusal then return {refusal} end
local channel = read_channel(call('HGET', KEYS[3], ARGV[4]), ARGV[4])
if channel.host ~= ARGV[2] then return {'not host'} end
if call('LLEN', KEYS[4]) ~= channel.length then return {'lost'} end
return {'done', call('LRANGE', KEYS[4], 0, -1)}
