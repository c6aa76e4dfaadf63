-- GrowthBook's computation of four metrics over the same events in one query, reimplemented. One row is a
-- variation.
WITH
    exposures AS (  -- one row is a view of the campaign
        SELECT
            visitor_id,
            toString(variation_id) AS variation,
            time
        FROM {{.Table}}
        WHERE website_id = {website_id:Int64}
            AND subject = 'campaign'
            AND subject_id = {campaign_id:Int64}
            AND event = 'view'
            AND time >= {from:DateTime64(3, 'UTC')}
            AND time < {to:DateTime64(3, 'UTC')}
    ),
    units AS (  -- one row is a visitor
        SELECT
            visitor_id,
            if(count(DISTINCT variation) > 1, '__multiple__', max(variation)) AS variation,
            min(time) AS first_exposure
        FROM exposures
        GROUP BY visitor_id
    ),
    metrics AS (  -- one row is a goal event
        SELECT
            visitor_id,
            time,
            toFloat64(1) AS goals,
            toFloat64(value) AS amount,
            toFloat64(profit) AS gain,
            toFloat64(extra_value) AS extra
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
            if(metrics.time >= units.first_exposure, metrics.goals, NULL) AS goals,
            if(metrics.time >= units.first_exposure, metrics.amount, NULL) AS amount,
            if(metrics.time >= units.first_exposure, metrics.gain, NULL) AS gain,
            if(metrics.time >= units.first_exposure, metrics.extra, NULL) AS extra
        FROM units
        LEFT JOIN metrics ON metrics.visitor_id = units.visitor_id
    ),
    per_unit AS (  -- one row is a visitor
        SELECT
            variation,
            visitor_id,
            sum(coalesce(goals, 0)) AS goals,
            sum(coalesce(amount, 0)) AS amount,
            sum(coalesce(gain, 0)) AS gain,
            sum(coalesce(extra, 0)) AS extra
        FROM joined
        GROUP BY variation, visitor_id
    )
SELECT
    variation,
    '' AS dimension,
    count() AS visitors,
    [sum(goals), sum(amount), sum(gain), sum(extra)] AS totals,
    [sum(goals * goals), sum(amount * amount), sum(gain * gain), sum(extra * extra)] AS squares
FROM per_unit
GROUP BY variation
ORDER BY variation
