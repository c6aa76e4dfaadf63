-- One row: whether a part of events whose first block comes after a position has rows with numbers that are not those of its
-- blocks. The name of a part has its first and its last block, and the number of its merges. Only one column is read.
SELECT count() > 0
FROM
(
    -- one row per part
    SELECT
        splitByChar('_', toString(_part)) AS name,
        min(_block_number)                AS least,
        max(_block_number)                AS most
    FROM {{.Order.Events}}
    WHERE indexHint({{.Order.NewPart}} AND splitByChar('_', _part)[4] != '0')  -- not computed per row
    GROUP BY _part
)
WHERE least < toUInt64(name[2]) OR most > toUInt64(name[3])
