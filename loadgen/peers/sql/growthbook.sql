-- GrowthBook's computation of one metric, reimplemented. One row is a variation and a value of the dimension.
-- A mean metric sums the values of a visitor. A proportion takes the maximum of the constant 1.
WITH
    exposures AS (  -- one row is a view of the campaign
        SELECT
            visitor_id,
            toString(variation_id) AS variation,
            time,
            {{.Dimension}} AS dimension
        FROM {{.Table}}
        WHERE website_id = {website_id:Int64}
            AND subject = 'campaign'
            AND subject_id = {campaign_id:Int64}
            AND event = 'view'
            AND {{.Filter}}
            AND time >= {from:DateTime64(3, 'UTC')}
            AND time < {to:DateTime64(3, 'UTC')}
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
    joined AS (  -- one row is a goal event of a visitor, or a visitor without one
        SELECT
            units.visitor_id AS visitor_id,
            units.variation AS variation,
            units.dimension AS dimension,
            if(metric.time >= units.first_exposure, metric.value, NULL) AS value
        FROM units
        LEFT JOIN metric ON metric.visitor_id = units.visitor_id
    ),
    per_unit AS (  -- one row is a visitor
        SELECT
            variation,
            dimension,
            visitor_id,
            {{.Aggregate}}(coalesce(value, 0)) AS value
        FROM joined
        GROUP BY variation, dimension, visitor_id
    )
SELECT
    variation,
    dimension,
    count() AS visitors,
    [sum(value)] AS totals,
    [sum(value * value)] AS squares
FROM per_unit
GROUP BY variation, dimension
ORDER BY variation, dimension
