-- One row per row of events that another writer inserted in a range of blocks.
SELECT event_id
FROM events
WHERE _block_number > {after:UInt64}
    AND _block_number <= {through:UInt64}
    AND writer != {writer:String}
