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

