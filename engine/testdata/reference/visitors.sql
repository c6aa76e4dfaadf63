arrived AS (  -- one row per revision of an event of the website: the copy that arrived first
        SELECT
            *, device, country, channel, browser, os, visitor_type, referrer, utm_source, utm_medium, utm_campaign, city, region,
            utm_content, utm_term, first_visit_page
        FROM events
        WHERE website_id = {website_id:Int64}
        ORDER BY version DESC
        LIMIT 1 BY visitor_id, subject, subject_id, experiment_id, event_id, revision
    ),
    own AS (  -- the events of the subject
        SELECT *
        FROM arrived
        WHERE subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
    ),
    revisions AS (  -- the goals, and those without exposures
        SELECT *
        FROM own
        WHERE event = 'goal'
        UNION ALL
        SELECT *
        FROM arrived
        WHERE subject = 'none'
            AND (visitor_id, event_id) GLOBAL NOT IN (SELECT visitor_id, event_id FROM own WHERE event != 'goal')
    ),
    latest AS (  -- of each goal, the last revision, rather a row of the subject, with the first time of all its rows
        SELECT
            * REPLACE (min(time) OVER (PARTITION BY visitor_id, event_id) AS time),
            row_number() OVER (PARTITION BY visitor_id, event_id ORDER BY revision DESC, subject = 'none') AS place
        FROM revisions
    ),
    attributed AS (  -- what counts
        SELECT *
        FROM own
        WHERE event != 'goal'
        UNION ALL
        SELECT * EXCEPT (place)
        FROM latest
        WHERE place = 1
            AND NOT cancelled
    ),
    visitors AS (  -- one row per visitor with a view: the first view and the events that may count
        SELECT
            visitor_id,
            argMinIf(
                (time, variation_id, {{.Dimension}}, toBool({{.Filters}})),
                (time, variation_id, event_id),
                event = 'view'
            )                                                             AS first_view,
            minIf(variation_id, event = 'view') != maxIf(variation_id, event = 'view') AS multi_exposed,
            maxIf(time, time < toDateTime64({to:String}, 3, 'UTC'))       AS last_seen,
            countIf(event = 'view' AND time < toDateTime64({to:String}, 3, 'UTC')) AS views,
            {{.ViewTimes}}                                                AS view_times,
            groupArrayIf(
                (time, event, toInt128(value), toInt128(profit), toInt128(extra_value)),
                ({{.Counts}}) AND time < toDateTime64({to:String}, 3, 'UTC')
            )                                                             AS events
        FROM attributed
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    ),
    counted AS (  -- one row per visitor in the report, or active in the window but first exposed before it: segment and sums
        SELECT
            visitor_id,
            first_view.1                                                 AS exposed_at,
            toUnixTimestamp64Milli(exposed_at)                           AS first_at,
            first_view.2                                                 AS variation_id,
            first_view.3                                                 AS dimension,
            exposed_at < toDateTime64({from:String}, 3, 'UTC')           AS exposed_before,
            multi_exposed,
            views,
            view_times,
            arrayFilter(event -> event.1 >= exposed_at, events)          AS reached,
            arrayFilter(event -> event.2 = 'goal', reached)              AS goals,
            arrayCount(event -> event.2 = 'click', reached)              AS clicks,
            arrayCount(event -> event.2 = 'submit', reached)             AS submits,
            arrayCount(event -> event.2 = 'completion', reached)         AS completions,
            arrayCount(event -> event.2 = 'conversion', reached)         AS conversions,
            arrayCount(event -> event.2 = 'contact', reached)            AS contacts,
            length(goals)                                                AS goals_reached,
            arraySum(goal -> goal.3, goals)                              AS value,
            arraySum(goal -> goal.4, goals)                              AS profit,
            arraySum(goal -> goal.5, goals)                              AS extra_value
        FROM visitors
        WHERE first_view.4
            AND exposed_at < toDateTime64({to:String}, 3, 'UTC')
            AND last_seen >= toDateTime64({from:String}, 3, 'UTC')
    )
