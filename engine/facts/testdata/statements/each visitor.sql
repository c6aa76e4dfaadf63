-- one row per visitor of the report: the first view, the events until the end of the window, and the goal events that count
SELECT
    visitor_id,
    any(variation) AS of_variation,
    any(toUnixTimestamp64Milli(first_time)) AS first_ms,
    any(concatWithSeparator('\0', device, country, channel, browser, os, visitor_type, referrer, utm_source, utm_medium, utm_campaign, city, region, utm_content, utm_term, first_visit_page)) AS of_first_view,
    sumIf(if(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) < {to_ms:Int64}, views, toUInt32(1 + arrayCount((ms, kind) -> kind = 1 AND toUnixTimestamp64Milli(first_time) + ms < {to_ms:Int64}, later_ms, later_kinds))), grain = 'visitor') AS all_views,
    toUInt64(sum(0)),
    toUInt64(sum(0)),
    toUInt64(sum(0)),
    toUInt64(sum(0)),
    toUInt64(sum(0)),
    countIf(is_counted) AS goal_events,
    countIf(is_counted AND bitAnd(marks, 1) = 1) AS unknown_values,
    sumIf(value, is_counted) AS total_value,
    sumIf(profit, is_counted) AS total_profit,
    sumIf(extra_value, is_counted) AS total_extra,
    total_value - greatest(total_value - {cap:Int64}, 0) AS counted_value,
    total_profit - (total_value - counted_value) AS counted_profit,
    toInt64(0) AS x,
    toInt64(0) AS y
FROM (
    SELECT
        *,
        (section = {goals:UInt64} AND goal_id = {goal_id:Int64} AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64} AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) < {to_ms:Int64}) AS is_counted
    FROM facts FINAL
    WHERE variation IN {variations:Array(String)}
        AND (section = {goals:UInt64} AND goal_id = {goal_id:Int64} AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64} AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) < {to_ms:Int64} OR section = {visitors:UInt64} AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64})
)
GROUP BY visitor_id
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1, max_bytes_before_external_group_by = 268435456, max_bytes_ratio_before_external_group_by = 0
