-- Deletes the row of a document that was withdrawn, with its body.
ALTER TABLE documents DELETE
WHERE account_id = {account:Int64}
    AND document_id = {id:String}
    AND isNull(withdrawn_at)
SETTINGS mutations_sync = 1
