-- One row: the intervals of the visible blocks of events, as partition · 2^40 + number, and the first blocks of merged parts;
-- the mutations: the last one, the sum of the last version of each partition, and whether one is not executed on some part;
-- the id of the table, whether the rows of its merged parts keep the numbers of their blocks, and whether the tables of
-- rollups are those of the server alone. Of the removals of events:
-- the last number that was claimed, the last one that has not ended, and whether it may still run.
SELECT
    parts.firsts                                            AS firsts,
    parts.lasts                                             AS lasts,
    parts.merged                                            AS merged,
    toUInt32(mutations.last)                                AS last_mutation,
    toUInt32(parts.versions)                                AS versions,
    mutations.unfinished > 0 OR parts.outdated > 0          AS mutating,
    tables.id                                               AS of_table,
    tables.numbered                                         AS numbered,
    tables.own                                              AS own,
    removals.last                                           AS last_removal,
    arrayMax(removals.unfinished.1)                         AS last_unfinished,
    arrayExists(at -> at > now64(3) - INTERVAL 10 MINUTE, removals.unfinished.2) AS removing
FROM
(
    SELECT
        arrayFlatten(groupArray(firsts))                    AS firsts,
        arrayFlatten(groupArray(lasts))                     AS lasts,
        arrayFlatten(groupArray(merged))                    AS merged,
        sum(version)                                        AS versions,
        sum(arrayCount(v -> v < version, applied))          AS outdated
    FROM
    (
        -- one row per partition; the name of a part ends with the version of its last mutation, if there was one
        SELECT
            groupArray(bitShiftLeft(toUInt64(partition_id), 40) + toUInt64(min_block_number))  AS firsts,
            groupArray(bitShiftLeft(toUInt64(partition_id), 40) + toUInt64(max_block_number))  AS lasts,
            groupArrayIf(bitShiftLeft(toUInt64(partition_id), 40) + toUInt64(min_block_number), level > 0) AS merged,
            max(toUInt64OrZero(splitByChar('_', name)[5]))  AS version,
            groupArray(toUInt64(data_version))              AS applied
        FROM system.parts
        WHERE database = currentDatabase() AND table = 'events_local' AND active
        GROUP BY partition_id
    )
) AS parts
CROSS JOIN
(
    SELECT
        max(toUInt64OrZero(mutation_id))                    AS last,
        countIf(NOT is_done)                                AS unfinished
    FROM system.mutations
    WHERE database = currentDatabase() AND table = 'events_local'
) AS mutations
CROSS JOIN
(
    SELECT
        anyIf(toString(uuid), name = 'events_local')                                                            AS id,
        countIf(name = 'events_local' AND position(engine_full, 'enable_block_number_column = 1') > 0) > 0      AS numbered,
        countIf(name != 'events_local' AND NOT startsWith(engine, 'Replicated')) = 4                            AS own
    FROM system.tables
    WHERE database = currentDatabase() AND name IN ('events_local', 'rollups', 'exposures', 'conversions', 'rollup_claims')
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
