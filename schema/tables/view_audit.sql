-- Keeps audit complete: a change that is written is also in it.
CREATE MATERIALIZED VIEW IF NOT EXISTS audit_view TO audit AS
SELECT
    account_id,
    changed_at,
    changed_by,
    kind,
    id,
    facet,
    version,
    archived,
    body
FROM catalogue
