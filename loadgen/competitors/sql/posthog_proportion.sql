-- PostHog's computation of a proportion, reimplemented. One row is a variation. The query scans the events once
-- and evaluates a funnel of two steps per visitor: the view, then the goal.
WITH
    per_visitor AS (  -- one row is a visitor
        SELECT
            visitor_id,
            if(uniqExactIf(variation_id, event = 'view') > 1, '$multiple', anyIf(toString(variation_id), event = 'view')) AS variation,
            windowFunnel({{.Span}})(toUInt64(toUnixTimestamp64Milli(time)), event = 'view', event = 'goal') = 2 AS converted
        FROM {{.Events}}
        WHERE {{.Campaign}}
            AND (event = 'view' OR (event = 'goal' AND {{.Goal}}))
            AND {{.Window "time"}}
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    )
SELECT
    variation,
    '' AS dimension,
    count() AS visitors,
    [toFloat64(sum(converted))] AS totals,
    [toFloat64(sum(converted))] AS squares
FROM per_visitor
GROUP BY variation
ORDER BY variation
