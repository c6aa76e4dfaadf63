INSERT INTO conversions
(
    bucket, generation, refresh, segment, goal_id, {{.Attributes}},
    first_time, visitor_id, since_ms, number, value, profit, extra_value, value_before, profit_before, extra_value_before
)
WITH
    {{template "first_views.sql" .}},
    converted AS (  -- one row per visitor with a counted goal event: these events by goal, in order, with running sums
        SELECT
            visitor_id,
            {{template "segment.sql"}}                                                             AS of_segment,
            shown,
            first_at,
            arraySort(arrayFilter(e -> e.2 >= first_at, events))                                   AS goals,
            arrayEnumerateUniq(goals.1)                                                            AS numbers,
            arrayCumSum(goals.4)                                                                   AS values,
            arrayCumSum(goals.5)                                                                   AS profits,
            arrayCumSum(goals.6)                                                                   AS extra_values
        FROM first_views
        WHERE notEmpty(goals)
    ),
    counted AS (  -- one row per counted goal event; one is the position of the visitor's first event of the goal
        SELECT
            *,
            arrayJoin(arrayEnumerate(goals))                                                       AS i,
            toUInt32(numbers[i])                                                                   AS number,
            i - number + 1                                                                         AS one
        FROM converted
    )
SELECT
    {bucket:UInt16}, {generation:UInt64}, {refresh:UInt64}, of_segment, goals[i].1,
{{- range .Shown}}
    {{.}},
{{- end}}
    fromUnixTimestamp64Milli(first_at, 'UTC'), visitor_id, toUInt64(goals[i].2 - first_at), number,
    goals[i].4, goals[i].5, goals[i].6,
    values[i] - goals[i].4 - (values[one] - goals[one].4),
    profits[i] - goals[i].5 - (profits[one] - goals[one].5),
    extra_values[i] - goals[i].6 - (extra_values[one] - goals[one].6)
FROM counted
UNION ALL
SELECT
    {bucket:UInt16}, {generation:UInt64}, {refresh:UInt64}, 255, 0,
{{- range .Shown}}
    '',
{{- end}}
    toDateTime64(0, 3, 'UTC'), 0, 0, 0, 0, 0, 0, 0, 0, 0
SETTINGS max_insert_threads = 1, min_insert_block_size_rows = 4000000000, min_insert_block_size_bytes = 4000000000000, async_insert = 0
