WITH
    unseen AS (  -- the visitors with events that do not count
        SELECT visitor_id
        FROM facts
        WHERE section = {visitors:UInt64}
            AND variation = ''
        GROUP BY visitor_id
        HAVING sum(toInt64(sign)) > 0
    ),
    exposed AS (  -- those of them with a view
        SELECT visitor_id
        FROM facts
        WHERE section = {visitors:UInt64}
            AND variation != ''
            AND visitor_id IN unseen
        GROUP BY visitor_id
        HAVING sum(toInt64(sign)) > 0
    )
-- one row per variation: goal events of visitors without a view, and these visitors, by the variation that the events carry
SELECT
    carried,
    toInt64(count())                                        AS goals,
    toInt64(uniqExact(visitor_id))                          AS visitors
FROM (
    -- one row per goal event: the variation of the row that arrived first
    SELECT visitor_id, argMax(variation_id, version)        AS carried
    FROM events
    WHERE website_id = {website_id:Int64}
        AND subject = {subject:String}
        AND subject_id = {subject_id:Int64}
        AND experiment_id = {experiment_id:Int64}
        AND event = 'goal'
        AND toUnixTimestamp64Milli(ingested_at) <= {through:Int64}
        AND visitor_id IN unseen
        AND visitor_id NOT IN exposed
    GROUP BY visitor_id, event_id
)
GROUP BY carried
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

