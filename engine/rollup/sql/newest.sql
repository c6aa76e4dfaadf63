-- One row per subject with events in a range of blocks: the last of these blocks. The name of a part has its last block.
SELECT
    website_id,
    toString(subject) AS of,
    subject_id,
    experiment_id,
    max(_block_number) AS block
FROM events
WHERE indexHint(toUInt64(splitByChar('_', _part)[3]) > {after:UInt64})
    AND _block_number > {after:UInt64}
    AND _block_number <= {through:UInt64}
GROUP BY website_id, subject, subject_id, experiment_id
