-- Numbers of rollups on a server, where several processes refresh them: of generations and epochs, and of deletions of
-- events. A process inserts a row with the number that it wants. The number belongs to the process whose row was inserted
-- first, which has the smallest block number.
CREATE TABLE IF NOT EXISTS rollup_claims
(
    number     UInt64,
    kind       Enum8('rows' = 0, 'rebuild' = 1, 'removal' = 2, 'removed' = 3)  COMMENT 'rows: of an epoch, or of a generation of rows of visitors; rebuild: of a generation; removal: a deletion of events begins; removed: it has ended',
    claimant   String                                           COMMENT 'the process and the try',
    subject    String                                           COMMENT 'rows, rebuild: whose rows they are',
    removal    String                                           COMMENT 'removed: the claimant of the deletion that has ended',
    subjects   Array(String)                                    COMMENT 'removed: those that lost events',
    at         DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')     COMMENT 'server clock'
)
ENGINE = MergeTree
ORDER BY (kind, number)
TTL toDateTime(at) + INTERVAL 30 DAY WHERE kind IN ('rows', 'rebuild')
SETTINGS enable_block_number_column = 1
