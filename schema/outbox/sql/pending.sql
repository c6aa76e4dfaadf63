-- the messages that a webhook has not received, in order, with the attempts since the last request
WITH
    requested AS (
        SELECT
            message_id,
            max(attempted_at) AS at
        FROM deliveries
        WHERE account_id = {account:Int64} AND webhook_id = {webhook:Int64} AND outcome = 'requested'
        GROUP BY message_id
    ),
    attempts AS (
        SELECT
            d.message_id                                                            AS message_id,
            argMax(toString(d.outcome), (d.attempted_at, d.outcome != 'requested')) AS last,
            max(d.attempted_at)                                                     AS last_at,
            countIf(d.outcome = 'retrying' AND d.attempted_at >= r.at)              AS retries,
            max(r.at)                                                               AS requested_at
        FROM deliveries AS d
        LEFT JOIN requested AS r ON d.message_id = r.message_id
        WHERE d.account_id = {account:Int64} AND d.webhook_id = {webhook:Int64}
        GROUP BY d.message_id
    )
SELECT
    m.account_id, m.message_id, m.event, m.website_id, m.subject, m.subject_id, m.experiment_id,
    m.state, m.recorded_at, m.body, a.retries, a.last_at,
    greatest(m.recorded_at, a.requested_at) AS due_since
FROM messages AS m
LEFT JOIN attempts AS a ON m.message_id = a.message_id
WHERE m.account_id = {account:Int64}
    AND (m.recorded_at >= {since:DateTime64(3, 'UTC')} OR a.requested_at > toDateTime64(0, 3, 'UTC'))
    AND (has({events:Array(String)}, m.event) OR a.requested_at > toDateTime64(0, 3, 'UTC'))
    AND a.last NOT IN ('delivered', 'failed')
ORDER BY m.recorded_at, m.message_id
LIMIT 1 BY m.message_id
LIMIT {limit:UInt32}
