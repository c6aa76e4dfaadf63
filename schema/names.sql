-- The campaigns, variations and goals of a store; the key of an id that was sent with and without its key.
SELECT website_id, toString(kind), campaign_id, id, max(key), argMin(source, first_at), min(first_at)
FROM names
WHERE kind IN ('campaign', 'variation', 'goal')
GROUP BY website_id, kind, campaign_id, id
