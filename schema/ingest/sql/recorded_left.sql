-- One row: the number of copies of some inserts whose removal is recorded and that are still stored. The first and the last
-- time narrow the rows that are read.
SELECT count()
FROM events
WHERE ingested_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
    AND ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
    AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at) IN (
        SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at
        FROM removed_copies
        WHERE (writer, toUnixTimestamp64Milli(ingested_at)) IN arrayZip({writers:Array(String)}, {times:Array(Int64)})
    )
