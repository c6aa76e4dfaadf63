-- The documents of an account, of one of its websites, of one kind, or with one id, without their bodies, each with its withdrawal. Of
-- several rows with the same meaning, the first one counts.
SELECT
    account_id, website_id, subject, subject_id, experiment_id, document_id, toString(kind), look,
    ended_at, made_at, made_by, media_type, summary, digest, size, withdrawn_at, withdrawn_by
FROM documents
WHERE account_id = {account:Int64}
    AND {website:Int64} IN (0, website_id)
    AND {kind:String} IN ('', toString(kind))
    AND {id:String} IN ('', document_id)
ORDER BY made_at, document_id, isNotNull(withdrawn_at), digest
LIMIT 1 BY document_id, isNotNull(withdrawn_at)
