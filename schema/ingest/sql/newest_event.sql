-- One row: the acceptance time of the last event, or 1970 if there is none.
SELECT max(ingested_at) AS newest
FROM events
WHERE {website_id:Int64} = 0 OR website_id = {website_id:Int64}
