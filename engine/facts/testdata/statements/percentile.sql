-- one row per key: visitors first exposed in the recent days
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    sum(toInt64(sign)) AS visitors_recent
FROM facts
WHERE section = {visitors:UInt64}
    AND first_day >= {recent_from:Date}
    AND first_day < {recent_to:Date}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row: the total value of each visitor with goal events
SELECT groupArray(total)
FROM (
    SELECT sum(sign * value) AS total
    FROM facts
    WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
    AND variation IN {variations:Array(String)}
    GROUP BY visitor_id
    HAVING sum(toInt64(sign)) != 0
)
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

