-- One row: the acceptance time of the last event, or 1970 if there is none.
SELECT max(last_ingested) AS newest
FROM subject_stats
WHERE {website_id:Int64} = 0 OR website_id = {website_id:Int64}
