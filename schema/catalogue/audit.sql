-- One row per change of the catalogue of one account or of all accounts, the latest first.
SELECT
    account_id,
    changed_at,
    changed_by,
    toString(kind)   AS of_kind,
    id,
    toString(facet)  AS of_facet,
    version,
    archived,
    body
FROM audit
WHERE {account:Int64} IN (0, account_id)
    AND changed_at >= {since:DateTime64(3, 'UTC')}
ORDER BY changed_at DESC, account_id, kind, id, facet, version
LIMIT {limit:UInt32}
