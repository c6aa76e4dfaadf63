-- A table in DuckDB with everything known about each visitor at the end. One row is a
-- visitor.
CREATE OR REPLACE TABLE visitors AS
WITH
    units AS (  -- one row is a visitor
        SELECT
            visitor_id,
            CAST(arg_min(variation_id, time) AS UTINYINT) AS variation_id,
            count(DISTINCT variation_id) > 1 AS multiple,
            min(time) AS first_exposure{{range .Attributes}},
            arg_min({{.}}, time) AS {{.}}{{end}}
        FROM events
        WHERE event = 'view'
        GROUP BY visitor_id
    ),
    totals AS (  -- one row is a visitor with a goal
        SELECT
            visitor_id,
            CAST(count(*) FILTER (goal_id = {{.Param "goal_1" "Int64"}}) AS BIGINT) AS goals,
            CAST(sum(value) FILTER (goal_id = {{.Param "goal_1" "Int64"}}) AS BIGINT) AS value,
            CAST(sum(profit) FILTER (goal_id = {{.Param "goal_1" "Int64"}}) AS BIGINT) AS profit,
            CAST(sum(extra_value) FILTER (goal_id = {{.Param "goal_1" "Int64"}}) AS BIGINT) AS extra_value{{range .Goals}},
            CAST(count(*) FILTER (goal_id = {{$.Param . "Int64"}}) > 0 AS UTINYINT) AS {{.}}{{end}}
        FROM events
        INNER JOIN units USING (visitor_id)
        WHERE event = 'goal' AND time >= first_exposure
        GROUP BY visitor_id
    )
SELECT *
FROM units
LEFT JOIN totals USING (visitor_id)
