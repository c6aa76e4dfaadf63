-- The rows of moments.sql in one pass without lists of events. Some visitors need the lists: those with a counted event
-- before the first view, with a view of an unknown variation, with first views that differ only in the event id, or with so
-- many goals that a sum could overflow. Column recount has their ids, and package visit counts their events.
WITH
    ranked AS (  -- one row per event: time and variation as numbers, and its kind
        SELECT
            visitor_id,
            event,
            event = 'view'                                                                     AS is_view,
            ({{.Counts}}) AS counts,
            {{.InTime}} AS in_time,
            ({{.Goals}}) AND in_time AS is_reached,
            toUInt64(toUnixTimestamp64Milli(time))                                             AS at,
            transform(variation_id, {variation_ids:Array(Int64)}, {ranks:Array(UInt8)}, 63)    AS rank,
            at * 64 + rank                                                                     AS place,
{{- if .Shows}}
            bitOr(bitAnd({{.DimensionHash}}, 18446744073709551614), toUInt64({{.Filters}})) AS shows,
            bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(shows))                        AS sight,
            bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(bitNot(shows)))                AS mirrored,
{{- end}}
            value                                                                              AS amount,
            profit                                                                             AS amount_of_profit,
            extra_value                                                                        AS amount_of_extra
        FROM {{.Events}}
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
    ),
    counted AS (  -- one row per visitor in the report, active in the window but exposed before it, or to be recounted; the first view is the minimum by time and variation
        SELECT
            visitor_id,
{{- if .Shows}}
            minIf(sight, is_view)                                     AS first_sight,
            toUInt64(bitShiftRight(first_sight, 64))                  AS first_view,
            toUInt64(first_sight)                                     AS shows,
            toUInt64(minIf(mirrored, is_view)) != bitNot(shows)       AS tied,
            bitShiftRight(shows, 1)                                   AS dimension_hash,
{{- else}}
            minIf(place, is_view)                                     AS first_view,
{{- end}}
            intDiv(first_view, 64)                                    AS first_at,
            groupBitOrIf(bitShiftLeft(toUInt64(1), rank), is_view)    AS seen,
            minIf(at, counts)                                         AS first_counted,
            countIf(is_view AND in_time)                              AS views,
{{- if .Widget}}
            countIf(event = 'click' AND in_time)                      AS clicks,
            countIf(event = 'submit' AND in_time)                     AS submits,
            countIf(event = 'completion' AND in_time)                 AS completions,
            countIf(event = 'conversion' AND in_time)                 AS conversions,
            countIf(event = 'contact' AND in_time)                    AS contacts,
{{- end}}
            countIf(is_reached)                                       AS goals_reached,
            sumIf(amount, is_reached)                                 AS value,
            sumIf(amount_of_profit, is_reached)                       AS profit,
            sumIf(amount_of_extra, is_reached)                        AS extra_value,
            bitTest(seen, 63){{if .Shows}} OR tied{{end}}             AS needs_recount,
            needs_recount
                OR first_counted BETWEEN 1 AND first_at - 1
                OR goals_reached > 900000                             AS recount,
            toUInt16(
                bitAnd(first_view, 63) * 8
{{- if .From}}
                + (first_at < {from_at:Int64}) * 4
{{- end}}
                + (bitAnd(seen, seen - 1) != 0) * 2
                + recount
            )                                                         AS segment
        FROM ranked
        GROUP BY visitor_id
        HAVING seen != 0
            AND (
                recount
                OR first_at < {to_at:Int64}
{{- if .From}}
                AND maxIf(at, in_time) >= {from_at:Int64}
{{- end}}
{{- if .Shows}}
                AND bitTest(shows, 0)
{{- end}}
            )
    ),
    cells AS (  -- one row per segment{{if .ByDimension}} and value of the dimension{{end}}; example is a visitor with the value
        SELECT
            c.segment                                         AS segment,
            groupArrayIf(c.visitor_id, c.recount)              AS recount,
{{- if .ByDimension}}
            groupArrayIf(1)(c.visitor_id, NOT c.needs_recount)  AS example,
            c.dimension_hash                                   AS dimension_hash,
            count()                                            AS visitors_at_most,
            countIf(c.needs_recount)                            AS needs_recount_visitors,
{{- end}}
{{- template "sums.sql" .}}        FROM counted AS c
        GROUP BY segment{{if .ByDimension}}, c.dimension_hash{{end}}
    )
{{- if .ByDimension}},
    valued AS (  -- the same rows with the minimum and maximum number of visitors of the value
        SELECT
            *,
            sum(if(bitTest(segment, 2), 0, visitors)) OVER (PARTITION BY dimension_hash)            AS of_value,
            sum(if(bitAnd(segment, 5) = 4, 0, visitors_at_most)) OVER (PARTITION BY dimension_hash) AS of_value_at_most
        FROM cells
    ),
    placed AS (  -- the same rows with the rank of the value
        SELECT
            *,
            dense_rank() OVER (ORDER BY of_value DESC, dimension_hash) AS place,
            sum(needs_recount_visitors) OVER ()                         AS needs_recount_in_all
        FROM valued
    ),
    chosen AS (  -- the same rows; kept if the value may be among the most frequent, for any result of the recount
        SELECT
            *,
            max(if(place = {top:UInt32}, of_value, 0)) OVER ()           AS least_of_top,
            of_value_at_most + needs_recount_in_all >= least_of_top       AS kept
        FROM placed
    )
-- one row per segment and value that may be among the most frequent, and one per segment for all other values
SELECT
    c.segment                     AS segment,
    groupArrayArray(c.recount)     AS recount,
    if(c.kept, c.example, [])      AS example,
    c.kept                         AS kept,
{{- template "merged.sql" .}}FROM chosen AS c
GROUP BY c.segment, if(c.kept, c.dimension_hash, 0), example, kept
{{- else}}
SELECT *
FROM cells
{{- end}}
