"""The exchange: upstream backup of a TaskManager's outputs, and their delivery over Arrow Flight.

`backup` keeps outputs in memory and then in `segment` files; `client` sends slices to `server`, whose `assembly` puts
them together again; `wire` defines the encoding of what is not Arrow data, `body` of what is; `memory` counts bytes.
Nothing here decides what is sent where or when: `lineage` and `node` do.
"""
