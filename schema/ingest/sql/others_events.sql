-- One row per row of events that another writer inserted in a range of blocks. The name of a part
-- has its last block.
SELECT event_id
FROM events
WHERE indexHint(toUInt64(splitByChar('_', _part)[3]) > {after:UInt64})
    AND _block_number > {after:UInt64}
    AND _block_number <= {through:UInt64}
    AND writer != {writer:String}
