-- End a query: all its keys go. The records' keys depend on its channels and share its hash tag.
-- KEYS: query, channels, records (the beginning of their names), then the query's other keys    ARGV: none
for _, channel in ipairs(call('HKEYS', KEYS[2])) do call('UNLINK', KEYS[3] .. ':' .. channel) end
for _, key in ipairs(KEYS) do call('UNLINK', key) end
return 'done'
