-- PostHog's computation of a mean metric, reimplemented. One row is a variation and a value of the dimension.
WITH
    exposures AS (  -- one row is a visitor
        SELECT
            visitor_id,
            if(uniqExact(variation_id) > 1, '$multiple', any(toString(variation_id))) AS variation,
            min(time) AS first_exposure,
            argMin({{.Dimension}}, time) AS dimension
        FROM {{.Table}}
        WHERE website_id = {website_id:Int64}
            AND subject = 'campaign'
            AND subject_id = {campaign_id:Int64}
            AND event = 'view'
            AND {{.Filter}}
            AND time >= {from:DateTime64(3, 'UTC')}
            AND time < {to:DateTime64(3, 'UTC')}
        GROUP BY visitor_id
    ),
    metric AS (  -- one row is a goal event
        SELECT
            visitor_id,
            time,
            {{.Value}} AS value
        FROM {{.Table}}
        WHERE website_id = {website_id:Int64}
            AND subject = 'campaign'
            AND subject_id = {campaign_id:Int64}
            AND event = 'goal'
            AND goal_id = {goal_id:Int64}
            AND time >= {from:DateTime64(3, 'UTC')}
            AND time < {to:DateTime64(3, 'UTC')}
    ),
    per_visitor AS (  -- one row is a visitor
        SELECT
            exposures.visitor_id AS visitor_id,
            any(exposures.variation) AS variation,
            any(exposures.dimension) AS dimension,
            sum(coalesce(metric.value, 0)) AS value
        FROM exposures
        LEFT JOIN metric ON metric.visitor_id = exposures.visitor_id
            AND metric.time >= exposures.first_exposure
        GROUP BY exposures.visitor_id
    )
SELECT
    variation,
    dimension,
    count() AS visitors,
    [sum(value)] AS totals,
    [sum(power(value, 2))] AS squares
FROM per_visitor
GROUP BY variation, dimension
ORDER BY variation, dimension
