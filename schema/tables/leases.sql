-- Which process does a job that only one process of a store may do at a time. The row with the highest version holds the
-- lease until it expires. If two processes write the same version, neither holds it.
CREATE TABLE IF NOT EXISTS leases
(
    name    LowCardinality(String),
    holder  String,
    version UInt64,
    until   DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (name, holder)
