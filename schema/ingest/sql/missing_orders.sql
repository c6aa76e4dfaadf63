-- One row: the number of goals with a customer of which the table customers has no row.
SELECT toInt64(count())
FROM (
    SELECT DISTINCT website_id, JSONExtractString(details, 'customer') AS customer, goal_id, event_id, visitor_id, revision
    FROM events
    WHERE details LIKE '%"customer":"%'
        AND event = 'goal'
)
WHERE customer != ''
    AND (website_id, reinterpretAsUInt64(reverse(unhex(customer))), goal_id, event_id, visitor_id, revision) NOT IN (
        SELECT website_id, customer_id, goal_id, event_id, visitor_id, revision
        FROM customers
        WHERE visitor_id != 0
    )
