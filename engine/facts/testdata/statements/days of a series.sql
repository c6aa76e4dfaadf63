-- one row per key: visitors first exposed in the recent days
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(sum(sign * sums[1])) AS visitors_recent
FROM facts
WHERE section = {days:UInt64}
    AND goal_id = 0
    AND first_day >= {recent_from:Date}
    AND first_day < {recent_to:Date}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0

-- one row per variation, goal and day: sums of the cells by day
SELECT
    variation,
    goal_id,
    toInt64(intDiv(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) + {shift:Int64}, {width:Int64})) AS bucket,
    sumForEach(arrayMap(x -> sign * x, sums)) AS of_cell
FROM facts
WHERE section = {days:UInt64}
    AND goal_id IN {cell_goals:Array(Int64)}
GROUP BY variation, goal_id, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0
