-- One row per event of which this insert has a copy that is not the first one, if all copies are in the blocks after a number.
-- It reads these blocks once, which takes less time than to look up many events. It selects the copies that
-- own_later_copies.sql selects: on a single server, copies of an event are in different blocks.
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    visitor_id,
    event_id
FROM events
WHERE indexHint(toUInt64(splitByChar('_', _part)[3]) > {after:UInt64})
    AND _block_number > {after:UInt64}
GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
HAVING countIf(writer = {writer:String} AND ingested_at = {ingested_at:DateTime64(3, 'UTC')}) > 0
    AND minIf(_block_number, writer = {writer:String} AND ingested_at = {ingested_at:DateTime64(3, 'UTC')}) > min(_block_number)
