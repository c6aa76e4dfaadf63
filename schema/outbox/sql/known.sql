-- the messages about a subject of an account, and those with some ids, without their data; of several rows of a message, the first one
SELECT
    account_id, message_id, event, website_id, subject, subject_id, experiment_id, state,
    recorded_at,
    '{}' AS body
FROM messages
WHERE (account_id, subject, subject_id, experiment_id) = ({account:Int64}, {subject:String}, {id:Int64}, {experiment:Int64})
    OR has({ids:Array(String)}, message_id)
ORDER BY recorded_at, message_id
LIMIT 1 BY message_id
