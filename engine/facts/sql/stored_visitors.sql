-- one row per visitor with events or facts, in a range of visitor ids
SELECT DISTINCT website_id, visitor_id
FROM (
    SELECT website_id, visitor_id
    FROM {{.Sent}}
    WHERE visitor_id BETWEEN {first:UInt64} AND {last:UInt64}
        AND ingested_at <= fromUnixTimestamp64Milli({through:Int64}, 'UTC')
    UNION ALL
    SELECT website_id, visitor_id
    FROM {{.Facts}}
    WHERE {{.InGeneration}}
        AND section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
        AND visitor_id BETWEEN {first:UInt64} AND {last:UInt64}
)
ORDER BY website_id, visitor_id
