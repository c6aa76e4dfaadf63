-- The last change of the facts of each website of an account by a person: the loss of events that was accepted, and what
-- was deleted.
SELECT id, max(changed_at)
FROM audit
WHERE account_id = {account:Int64} AND kind = 'facts'
GROUP BY id
