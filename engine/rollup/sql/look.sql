-- One row: the number of the last visible block of events, the largest number of the first block of a merged part, the id of
-- their table, whether the rows of its merged parts keep the numbers of their blocks, when the server was started, in Unix
-- seconds, which may differ by one each time; of the removals of events: the last number that was claimed, the last one that
-- has not ended, and whether it may still run.
SELECT
    blocks.last                                             AS block,
    blocks.last_merged                                      AS last_merged,
    tables.id                                               AS of_table,
    tables.numbered                                         AS numbered,
    toInt64(toUnixTimestamp(now()) - uptime())              AS started,
    removals.last                                           AS last_removal,
    arrayMax(removals.unfinished.1)                         AS last_unfinished,
    arrayExists(at -> at > now64(3) - INTERVAL 10 MINUTE, removals.unfinished.2) AS removing
FROM
(
    SELECT
        toUInt64(max(max_block_number))              AS last,
        toUInt64(maxIf(min_block_number, level > 0)) AS last_merged
    FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active
) AS blocks
CROSS JOIN
(
    SELECT
        toString(uuid)                                                    AS id,
        position(engine_full, 'enable_block_number_column = 1') > 0       AS numbered
    FROM system.tables
    WHERE database = currentDatabase() AND name = 'events'
) AS tables
CROSS JOIN
(
    SELECT
        max(number)                                         AS last,
        groupArrayIf(removal, kind = 'removed')             AS ended,
        arrayFilter(r -> NOT has(ended, r.3), groupArrayIf((number, at, claimant), kind = 'removal')) AS unfinished
    FROM rollup_claims
    WHERE kind IN ('removal', 'removed')
) AS removals
