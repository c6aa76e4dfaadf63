-- one row per key and lower bound of a bin: the number of counted goal events in the bin
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(roundDown(value, {bins:Array(Int64)})) AS bucket,
    toInt128(sum(toInt64(sign))) AS goals_reached
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
GROUP BY place, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
