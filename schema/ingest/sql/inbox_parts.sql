-- One row per part of events_inbox, in the order of arrival.
SELECT name, rows, data_uncompressed_bytes AS bytes
FROM system.parts
WHERE database = currentDatabase() AND table = 'events_inbox' AND active AND rows > 0
ORDER BY min_block_number
