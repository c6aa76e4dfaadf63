{{with index .Metrics 0 -}}
{{if $.Limits}}    limits AS (  -- one row: mean and standard deviation of the values of goal events
        SELECT
            avg(metric_events.value) AS mean,
            stddev_samp(metric_events.value) AS deviation
        FROM exposures
        INNER JOIN metric_events ON metric_events.visitor_id = exposures.visitor_id
        WHERE metric_events.time >= exposures.first_exposure
            AND exposures.variation != '$multiple'
    ),
    kept AS (  -- one row is a goal event within the limits
        SELECT metric_events.*
        FROM metric_events
        CROSS JOIN limits
        WHERE abs(value - mean) <= {{$.ZScore}} * deviation
    ),
{{end}}    entity_metrics AS (  -- one row is a visitor
        SELECT
            exposures.visitor_id AS visitor_id,
            exposures.variation AS variation,
            exposures.dimension AS dimension,
            {{.Aggregate}}(coalesce(goals.value, 0)) AS total
        FROM exposures
        LEFT JOIN {{if $.Limits}}kept{{else}}metric_events{{end}} AS goals ON goals.visitor_id = exposures.visitor_id
            AND goals.time >= exposures.first_exposure
        GROUP BY exposures.visitor_id, exposures.variation, exposures.dimension
    )
SELECT
    variation,
    dimension,
    count(*) AS visitors,
    [sum(total)] AS totals,
    [sum(power(total, 2))] AS squares
FROM entity_metrics
GROUP BY variation, dimension
ORDER BY variation, dimension
{{- end}}
