-- The body of a document.
SELECT body
FROM documents
WHERE account_id = {account:Int64}
    AND document_id = {id:String}
    AND digest = {digest:String}
    AND isNull(withdrawn_at)
LIMIT 1
