-- GrowthBook's metric table of an incremental refresh: the values after the first exposure. One row is a visitor and a day.
CREATE TABLE loadgen_growthbook_metrics
ENGINE = MergeTree
ORDER BY (visitor_id, metric_date)
AS SELECT
    visitor_id,
    toDate(time) AS metric_date,
    toFloat64(countIf(goal_id = {{.Param "goal_1" "Int64"}})) AS goals,
    toFloat64(sumIf(events.value, goal_id = {{.Param "goal_1" "Int64"}})) AS value,
    toFloat64(sumIf(events.profit, goal_id = {{.Param "goal_1" "Int64"}})) AS profit,
    toFloat64(sumIf(events.extra_value, goal_id = {{.Param "goal_1" "Int64"}})) AS extra_value,
    toFloat64(sumIf(events.value, goal_id = {{.Param "goal_1" "Int64"}} AND events.value >= {{.Param "goal_value" "Int64"}})) AS value_from{{range .Goals}},
    toFloat64(countIf(goal_id = {{$.Param . "Int64"}}) > 0) AS {{.}}{{end}}
FROM events
INNER JOIN loadgen_growthbook_units AS units USING (visitor_id)
WHERE {{.Campaign}}
    AND event = 'goal'
    AND time >= units.first_exposure
GROUP BY visitor_id, metric_date
