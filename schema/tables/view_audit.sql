-- Keeps audit complete: every change that is written to the catalogue is also written to
-- audit, but the salt of an account, which is a secret.
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
WHERE facet != 'salt'
