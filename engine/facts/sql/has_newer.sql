-- the visitors with events that were accepted after a time
(website_id, visitor_id) IN (
            SELECT website_id, visitor_id
            FROM {{.Sent}}
            WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
        )
