-- One row per part that could not be read and was set aside.
SELECT
    d.table                                                                              AS Table,
    d.name                                                                               AS Name,
    d.path                                                                               AS Path,
    assumeNotNull(d.min_block_number) = assumeNotNull(d.max_block_number) AND assumeNotNull(d.level) <= 1 AS inserted,  -- 1: of a table that adds up rows of equal keys
    countIf(p.active AND assumeNotNull(d.min_block_number) BETWEEN p.min_block_number AND p.max_block_number) > 0
        AND countIf(p.active AND assumeNotNull(d.max_block_number) BETWEEN p.min_block_number AND p.max_block_number) > 0
                                                                                         AS continued
FROM system.detached_parts AS d
LEFT JOIN system.parts AS p
    ON p.database = d.database AND p.table = d.table AND p.partition_id = assumeNotNull(d.partition_id)
WHERE d.database = currentDatabase()
    AND startsWith(d.reason, 'broken')
GROUP BY d.table, d.name, d.path, d.min_block_number, d.max_block_number, d.level
ORDER BY d.table, d.name
