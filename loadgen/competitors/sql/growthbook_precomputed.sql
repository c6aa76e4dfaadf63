-- GrowthBook's statistics query of an incremental refresh, reimplemented: it joins the precomputed units with the daily
-- values of each visitor. One row is a variation and a value of the dimension.
WITH
    units AS (  -- one row is a visitor
        SELECT
            visitor_id,
            variation,
            {{.Dimension}} AS dimension
        FROM loadgen_growthbook_units
        WHERE {{.Filter}}
            AND {{.Window "first_exposure"}}
    ),
    totals AS (  -- one row is a visitor with a goal
        SELECT
            visitor_id{{range .Metrics}},
            {{.Aggregate}}({{.Column}}) AS {{.Name}}{{end}}
        FROM loadgen_growthbook_metrics
        WHERE metric_date >= toDate({{.Param "from" "DateTime64(3, 'UTC')"}})
            AND metric_date < {{.Param "to" "DateTime64(3, 'UTC')"}}
        GROUP BY visitor_id
    ),
    joined AS (  -- one row is a visitor
        SELECT
            units.variation AS variation,
            units.dimension AS dimension{{range .Metrics}},
            coalesce(totals.{{.Name}}, 0) AS {{.Name}}_total{{end}}
        FROM units
        LEFT JOIN totals ON totals.visitor_id = units.visitor_id
    )
SELECT
    variation,
    dimension,
    count() AS visitors,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}toFloat64(sum({{.Name}}_total)){{end}}] AS totals,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}toFloat64(sum({{.Name}}_total * {{.Name}}_total)){{end}}] AS squares
FROM joined
GROUP BY variation, dimension
ORDER BY variation, dimension
