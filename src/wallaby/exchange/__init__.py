"""The exchange: upstream backup of a TaskManager's outputs, and their delivery over Arrow Flight.

`backup` keeps outputs in memory and then in `segment` files; `client` sends slices to `server`, whose
`assembly` puts them together again; `wire` fixes the bytes of what is not Arrow, `body` of what is; `memory`
counts. Nothing here decides what goes where or when: that is `lineage` and `worker`.
"""
