-- Append records, each independently; see `Gcs.commit` for the order of the checks. Whatever could be
-- wrong with the call as a whole is found before the first write.
-- KEYS: query, members, channels, delivered, splits, then for each commit the records of its channel
-- ARGV: incarnation, worker, epoch, then for each commit: channel, since, seq, final, record, what is left of its split or
--       `-`, number of edges, then for each edge: edge, count
-- Answers for each commit its verdict and the next split, `-` if there is none.
local worker = ARGV[2]
local commits = {}
local at = 4
for which = 6, #KEYS do
  local edges = tonumber(ARGV[at + 6])
  commits[#commits + 1] = {
    name = ARGV[at], since = ARGV[at + 1], seq = tonumber(ARGV[at + 2]), final = ARGV[at + 3],
    record = ARGV[at + 4], left = ARGV[at + 5], first_edge = at + 7, last_edge = at + 6 + 2 * edges,
    records = KEYS[which],
  }
  at = at + 7 + 2 * edges
end
local answers = {}
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], worker, ARGV[3])
if refusal then
  for _ in ipairs(commits) do
    answers[#answers + 1] = refusal
    answers[#answers + 1] = '-'
  end
  return answers
end
local channels = {}
local lost = false
for _, commit in ipairs(commits) do
  local channel = channels[commit.name] or read_channel(call('HGET', KEYS[3], commit.name), commit.name)
  channels[commit.name] = channel
  -- The keys were deleted from outside: a reader without splits would end as if it had read them all.
  local stage = string.match(commit.name, '^%d+')
  lost = lost or call('LLEN', commit.records) ~= channel.length
    or (channel.split ~= '-' and call('HEXISTS', KEYS[5], stage) == 0)
end
if lost then
  for _ in ipairs(commits) do
    answers[#answers + 1] = 'lost'
    answers[#answers + 1] = '-'
  end
  return answers
end

-- The stage's next split, or `-`; only stages of readers have any.
local function take_split(name)
  local stage = string.match(name, '^%d+')
  local text = call('HGET', KEYS[5], stage)
  if not text then return '-' end
  local next_, all = string.match(text, '^(%d+) (%d+)$')
  if tonumber(next_) >= tonumber(all) then return '-' end
  call('HSET', KEYS[5], stage, int(tonumber(next_) + 1) .. ' ' .. all)
  return next_
end

local function apply(commit, channel)
  if channel.host ~= worker or channel.since ~= commit.since then return 'not host', '-' end
  if commit.seq < channel.length then
    if call('LINDEX', commit.records, commit.seq) ~= commit.record then return 'diverged', '-' end
    if raise_delivered(KEYS[4], ARGV, commit.first_edge, commit.last_edge) then
      call('HINCRBY', KEYS[1], 'version', 1)
    end
    return 'already', channel.split
  end
  if channel.closed == '1' then return 'closed', '-' end
  if channel.final == '1' or commit.seq > channel.length then return 'out of order', '-' end
  call('RPUSH', commit.records, commit.record)
  channel.length = channel.length + 1
  channel.final = commit.final
  channel.split = commit.left
  if commit.final ~= '1' and commit.left == '-' then channel.split = take_split(commit.name) end
  channel.losses = '0'
  call('HSET', KEYS[3], commit.name, write_channel(channel))
  raise_delivered(KEYS[4], ARGV, commit.first_edge, commit.last_edge)
  call('HINCRBY', KEYS[1], 'commits', 1)
  call('HINCRBY', KEYS[1], 'version', 1)
  return 'done', channel.split
end

for _, commit in ipairs(commits) do
  answers[#answers + 1], answers[#answers + 2] = apply(commit, channels[commit.name])
end
return answers
