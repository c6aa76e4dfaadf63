-- Keeps audit complete: every change that is written to the catalogue is also written to
-- audit.
CREATE MATERIALIZED VIEW IF NOT EXISTS audit_view{{.On}} TO audit AS
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
