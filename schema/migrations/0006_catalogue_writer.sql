-- The process that wrote a row. It is in the key so that a merge drops a row only for a later one of the same
-- writer: rows of two writers with the same version are a race, which each of them has to be able to see.
ALTER TABLE catalogue
    ADD COLUMN IF NOT EXISTS writer String COMMENT 'process that wrote the row',
    MODIFY ORDER BY (account_id, kind, id, facet, writer)
