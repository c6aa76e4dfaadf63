-- One row per change that took effect in the catalogue of one account or of all accounts, the latest first.
WITH
    written AS (  -- one row per version: of several servers that wrote the version, the first one made the change
        SELECT
            account_id, changed_at, kind, id, facet, version,
            cityHash64(body, archived)                    AS written_body,
            facet = 'state' AND JSONExtractBool(body, 'active')  AS active,
            if(facet = 'state',
                cityHash64(archived, active, JSONExtractRaw(body, 'shareHistory'), JSONExtractRaw(body, 'planHistory'), JSONExtractRaw(body, 'outcomes'),
                    JSONExtractRaw(body, 'learnedPrior')),
                written_body)                             AS content
        FROM audit
        WHERE {account:Int64} IN (0, account_id)
        ORDER BY account_id, kind, id, facet, version, changed_at, written_body
        LIMIT 1 BY account_id, kind, id, facet, version
    ),
    compared AS (  -- the same rows, compared with the previous version
        SELECT
            *,
            lagInFrame(content) OVER before               AS content_before,
            lagInFrame(active, 1, 2) OVER before != active AS switched
        FROM written
        WINDOW before AS (PARTITION BY account_id, kind, id, facet ORDER BY version ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ),
    changes AS (  -- rows that changed something; a repeated start or stop changes nothing
        SELECT
            *
        FROM compared
        WHERE content != content_before
            AND changed_at >= {since:DateTime64(3, 'UTC')}
        ORDER BY changed_at DESC, account_id, kind, id, facet, version DESC
        LIMIT {limit:UInt32}
    )
SELECT
    audit.account_id,
    audit.changed_at,
    audit.changed_by,
    toString(audit.kind)   AS of_kind,
    audit.id,
    toString(audit.facet)  AS of_facet,
    audit.version, audit.archived, audit.body, changes.switched
FROM audit
INNER JOIN changes
    ON audit.account_id = changes.account_id
    AND audit.kind = changes.kind
    AND audit.id = changes.id
    AND audit.facet = changes.facet
    AND audit.version = changes.version
    AND audit.changed_at = changes.changed_at
    AND cityHash64(audit.body, audit.archived) = changes.written_body
ORDER BY audit.changed_at DESC, audit.account_id, audit.kind, audit.id, audit.facet, audit.version DESC
LIMIT 1 BY audit.account_id, audit.kind, audit.id, audit.facet, audit.version
