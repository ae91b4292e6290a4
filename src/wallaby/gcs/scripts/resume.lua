-- Apply a plan to the version that it was made from, raise the epoch and open the gate.
-- KEYS: query, channels, delivered, rereads, claims
-- ARGV: incarnation, version, number of channels, then for each: name, host, base, losses (each empty: unchanged),
--       closed (0: unchanged); number of edges, then for each: edge, count; the re-reads.
local refusal, epoch, gate = absent(KEYS[1], ARGV[1])
if refusal then return refusal end
if gate == '1' or call('HGET', KEYS[1], 'version') ~= ARGV[2] then return 'conflict' end
local at = 4
local changed = {}
for _ = 1, tonumber(ARGV[3]) do
  local name, host, base, losses, closed = unpack(ARGV, at, at + 4)
  local channel = read_channel(call('HGET', KEYS[2], name), name)
  if host ~= '' then
    channel.host = host
    channel.since = int(tonumber(epoch) + 1)
  end
  if base ~= '' then channel.base = base end
  if losses ~= '' then channel.losses = losses end
  if closed == '1' then channel.closed = closed end
  changed[#changed + 1] = name
  changed[#changed + 1] = write_channel(channel)
  at = at + 5
end
in_chunks('HSET', KEYS[2], changed)
local edges = tonumber(ARGV[at])
for edge = at + 1, at + 2 * edges, 2 do call('HSET', KEYS[3], ARGV[edge], ARGV[edge + 1]) end
call('DEL', KEYS[4], KEYS[5])
for reread = at + 2 * edges + 1, #ARGV do call('RPUSH', KEYS[4], ARGV[reread]) end
call('HINCRBY', KEYS[1], 'epoch', 1)
call('HINCRBY', KEYS[1], 'version', 1)
call('HSET', KEYS[1], 'gate', 1)
return 'done'
