-- the latest messages of an account, with the state of their deliveries
WITH
    latest AS (
        SELECT *
        FROM
        (
            SELECT *
            FROM messages
            WHERE account_id = {account:Int64}
                AND {website:Int64} IN (0, website_id)
            ORDER BY recorded_at, message_id
            LIMIT 1 BY message_id
        )
        ORDER BY recorded_at DESC, message_id
        LIMIT {limit:UInt32}
    ),
    attempts AS (
        SELECT
            message_id,
            webhook_id,
            argMax(toString(outcome), (attempted_at, outcome != 'requested')) AS last_outcome,
            countIf(outcome != 'requested')                                   AS tries,
            max(attempted_at)                                                 AS last_at,
            argMax(status, (attempted_at, outcome != 'requested'))            AS last_status,
            argMax(detail, (attempted_at, outcome != 'requested'))            AS last_detail
        FROM deliveries
        WHERE account_id = {account:Int64}
            AND message_id IN (SELECT message_id FROM latest)
        GROUP BY message_id, webhook_id
    )
SELECT
    m.account_id, m.message_id, m.event, m.website_id, m.subject, m.subject_id, m.experiment_id,
    m.state, m.recorded_at, m.body, a.webhook_id, a.last_outcome, a.tries, a.last_at, a.last_status,
    a.last_detail
FROM latest AS m
LEFT JOIN attempts AS a ON m.message_id = a.message_id
ORDER BY m.recorded_at DESC, m.message_id, a.webhook_id
