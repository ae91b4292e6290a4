-- Close, in this order, every candidate that has not ended and whose consumers all have.
-- KEYS: query, members, channels
-- ARGV: incarnation, worker, epoch, then for each candidate: channel, number of consumers, consumers...
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
local channels = {}
local function channel_of(name)
  channels[name] = channels[name] or read_channel(call('HGET', KEYS[3], name), name)
  return channels[name]
end
local function ended(channel)
  return channel.final == '1' or channel.closed == '1'
end

local changed = {}
local closed = 0
local at = 4
while at <= #ARGV do
  local name, consumers = ARGV[at], tonumber(ARGV[at + 1])
  local candidate = channel_of(name)
  local closes = not ended(candidate)
  for which = at + 2, at + 1 + consumers do closes = ended(channel_of(ARGV[which])) and closes end
  if closes then
    candidate.closed = '1'
    closed = closed + 1
    changed[#changed + 1] = name
    changed[#changed + 1] = write_channel(candidate)
  end
  at = at + 2 + consumers
end
in_chunks('HSET', KEYS[3], changed)
if closed > 0 then call('HINCRBY', KEYS[1], 'version', closed) end
return 'done'
