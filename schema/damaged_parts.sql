-- One row per detached part that is broken. An insert into a table that sums rows with equal keys creates a part of level 1.
SELECT
    d.table             AS Table,
    d.name              AS Name,
    any(d.path)         AS Path,
    any(assumeNotNull(d.partition_id)) AS Partition,
    any(assumeNotNull(d.min_block_number)) AS First,
    any(assumeNotNull(d.max_block_number)) AS Last,
    any(d.bytes_on_disk) AS Bytes,
    any(assumeNotNull(d.min_block_number) = assumeNotNull(d.max_block_number) AND assumeNotNull(d.level) <= 1) AS Inserted,
    countIf(p.active AND assumeNotNull(d.min_block_number) BETWEEN p.min_block_number AND p.max_block_number) > 0
        AND countIf(p.active AND assumeNotNull(d.max_block_number) BETWEEN p.min_block_number AND p.max_block_number) > 0 AS Continued
FROM system.detached_parts AS d
LEFT JOIN system.parts AS p
    ON p.database = d.database AND p.table = d.table AND p.partition_id = assumeNotNull(d.partition_id)
WHERE d.database = currentDatabase()
    AND startsWith(d.reason, 'broken')
GROUP BY d.table, d.name
ORDER BY d.table, d.name
