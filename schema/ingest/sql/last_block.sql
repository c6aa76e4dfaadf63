-- One row: the largest number of a block of events that is visible, 0 if there is none, and when the server started, in Unix
-- seconds, which may differ by one each time.
SELECT
    toUInt64(max(max_block_number))                 AS block,
    toInt64(toUnixTimestamp(now()) - uptime())      AS started
FROM system.parts
WHERE database = currentDatabase()
    AND table = 'events'
    AND active
