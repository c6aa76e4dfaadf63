-- At most one row: the digest of the first body that was accepted with the key.
SELECT digest
FROM deliveries
WHERE website_id = {website_id:Int64}
    AND key = {key:String}
ORDER BY accepted_at, digest
LIMIT 1
