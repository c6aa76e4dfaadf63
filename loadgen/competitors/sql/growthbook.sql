-- GrowthBook's computation, reimplemented: all metrics over the same goal events in one query. One row is a variation
-- and a value of the dimension. A mean sums the values of a visitor. A proportion takes the maximum of the constant 1.
WITH
    exposures AS (  -- one row is a view of the campaign
        SELECT
            visitor_id,
            toString(variation_id) AS variation,
            time,
            {{.Dimension}} AS dimension
        FROM {{.Events}}
        WHERE {{.Campaign}}
            AND event = 'view'
            AND {{.Filter}}
            AND {{.Window "time"}}
    ),
    units AS (  -- one row is a visitor
        SELECT
            visitor_id,
            if(count(DISTINCT variation) > 1, '__multiple__', max(variation)) AS variation,
            min(time) AS first_exposure,
            argMin(dimension, time) AS dimension
        FROM exposures
        GROUP BY visitor_id
    ),
    goals AS (  -- one row is a goal event
        SELECT
            visitor_id,
            time{{range .Metrics}},
            {{.Value}} AS {{.Name}}{{end}}
        FROM {{.Events}}
        WHERE {{.Campaign}}
            AND event = 'goal'
            AND {{.Goal}}
            AND {{.Window "time"}}
    ),
{{- if .Limits}}
    limits AS (  -- one row: mean and standard deviation of the values of goal events
        SELECT
            avg(m1) AS mean,
            stddev_samp(m1) AS deviation
        FROM units
        INNER JOIN goals ON goals.visitor_id = units.visitor_id
        WHERE goals.time >= units.first_exposure
            AND units.variation != '__multiple__'
    ),
    kept AS (  -- one row is a goal event within the limits
        SELECT goals.*
        FROM goals
        CROSS JOIN limits
        WHERE abs(m1 - mean) <= {{.ZScore}} * deviation
    ),
{{- end}}
    joined AS (  -- one row is a goal event of a visitor, or a visitor without one
        SELECT
            units.visitor_id AS visitor_id,
            units.variation AS variation,
            units.dimension AS dimension{{range .Metrics}},
            if(goals.time >= units.first_exposure, {{.Name}}, NULL) AS {{.Name}}_after{{end}}
        FROM units
        LEFT JOIN {{if .Limits}}kept{{else}}goals{{end}} AS goals ON goals.visitor_id = units.visitor_id
    ),
    per_unit AS (  -- one row is a visitor
        SELECT
            variation,
            dimension,
            visitor_id{{range .Metrics}},
            {{.Aggregate}}(coalesce({{.Name}}_after, 0)) AS {{.Name}}_total{{end}}
        FROM joined
        GROUP BY variation, dimension, visitor_id
    )
SELECT
    variation,
    dimension,
    count(*) AS visitors,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}sum({{.Name}}_total){{end}}] AS totals,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}sum({{.Name}}_total * {{.Name}}_total){{end}}] AS squares
FROM per_unit
GROUP BY variation, dimension
ORDER BY variation, dimension
