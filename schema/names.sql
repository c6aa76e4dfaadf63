-- The names of a website, or of all websites; the key of an id that was sent with and without its key.
SELECT website_id, toString(kind), campaign_id, id, max(key), argMin(source, first_at), min(first_at)
FROM names
WHERE {website_id:Int64} IN (0, website_id)
GROUP BY website_id, kind, campaign_id, id
ORDER BY website_id, kind, campaign_id, id
