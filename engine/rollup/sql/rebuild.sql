INSERT INTO rollups
(
    bucket, generation, website_id, subject, subject_id, experiment_id, is_cell, cube_name, event, goal_id,
    {{.Attributes}}, variation_id, multi_exposed, first_day, day,
    visitors, since_shares, events, events_squares,
    value, value_times_goals, profit, extra_value, signs
)
WITH
    toInt256('340282366920938463463374607431768211456') AS above_squares,  -- 2^128
    toInt256(1099511627776) AS next_sign,  -- 2^40
    keyed AS (  -- one row per event of the visitors in the range: sort key as one number, attributes as one string
        SELECT
            *,
            toUInt256(toUnixTimestamp64Milli(time)) AS at,
            bitOr(
                bitShiftLeft(at, 128),
                bitOr(bitShiftLeft(toUInt256(reinterpretAsUInt64(variation_id) + 9223372036854775808), 64), toUInt256(event_id))
            ) AS place,
            concat({{.Shown}}) AS shows
        FROM {{.Order.Events}}
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
            AND {{.Order.Until}}
            AND visitor_id BETWEEN {first_visitor:UInt64} AND {last_visitor:UInt64}
    ),
    visitors AS (  -- one row per visitor with a view: the first view (minimum by time, variation and id), and all events
        SELECT
            argMinIf(shows, place, event = 'view')                                                             AS first_shows,
            minIf(place, event = 'view')                                                                       AS first_place,
            minIf(variation_id, event = 'view') != maxIf(variation_id, event = 'view')                         AS multi_exposed,
            arraySort(groupArrayIf(toDate32(time), event = 'view'))                                            AS view_days,
            arraySort(groupUniqArray(toDate32(time)))                                                          AS days,
            groupArrayIf((event, goal_id, toUnixTimestamp64Milli(time), value, profit, extra_value), event != 'view') AS others
        FROM keyed
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    ),
    exposed AS (  -- the same rows: events from the first view on; goals twice, once for all goals together
        SELECT
            multi_exposed,
            view_days,
            splitByChar('\0', first_shows)                                                                     AS shown,
            throwIf(length(shown) != {attributes:UInt8}, 'no rollup: an attribute contains a NUL byte')           AS is_splittable,
            toInt64(bitShiftRight(first_place, 128))                                                           AS first_at,
            reinterpretAsInt64(toUInt64(bitAnd(bitShiftRight(first_place, 64), toUInt256(18446744073709551615))) + 9223372036854775808) AS variation_id,
            toDate32(fromUnixTimestamp64Milli(first_at, 'UTC'))                                                AS first_day,
            arrayFilter(day -> day >= first_day, days)                                                         AS seen_days,
            arrayMap(e -> (e.1, e.2, toDate32(fromUnixTimestamp64Milli(e.3, 'UTC')), toInt128(e.4), toInt128(e.5), toInt128(e.6)),
                arrayFilter(e -> e.3 >= first_at, others))                                                     AS counted,
            arrayConcat(counted, arrayMap(e -> (e.1, toInt64(0), e.3, e.4, e.5, e.6), arrayFilter(e -> e.1 = 'goal', counted))) AS reached,
            throwIf(arraySum(e -> abs(e.4) + abs(e.5) + abs(e.6), counted) > {most:Int128}, 'no rollup: the squares of the amounts overflow') AS is_exact
        FROM visitors
    ),
    placed AS (  -- one row per visitor, event, goal and day: number and amounts before the day and including it
        SELECT
            multi_exposed,
            shown,
            variation_id,
            first_at,
            arrayJoin(arrayConcat(
                arrayMap(d -> (
                        toInt8(1), toInt64(0), first_day, d,
                        toInt64(arrayCount(day -> day < d, view_days)), toInt64(arrayCount(day -> day <= d, view_days)),
                        toInt128(0), toInt128(0), toInt128(0), toInt128(0), toInt128(0), toInt128(0)),
                    arrayDistinct(view_days)),
                arrayMap((before, d) -> (
                        toInt8(0), toInt64(0), before, d,
                        toInt64(0), toInt64(1),
                        toInt128(0), toInt128(0), toInt128(0), toInt128(0), toInt128(0), toInt128(0)),
                    arrayPopBack(seen_days), arrayPopFront(seen_days)),
                arrayMap(p -> (
                        toInt8(p.1), p.2, first_day, p.3,
                        toInt64(length(arrayFilter(e -> (e.1, e.2) = (p.1, p.2) AND e.3 < p.3, reached) AS before)),
                        toInt64(length(arrayFilter(e -> (e.1, e.2) = (p.1, p.2) AND e.3 <= p.3, reached) AS until)),
                        arraySum(e -> e.4, before), arraySum(e -> e.4, until),
                        arraySum(e -> e.5, before), arraySum(e -> e.5, until),
                        arraySum(e -> e.6, before), arraySum(e -> e.6, until)),
                    arrayDistinct(arrayMap(e -> (e.1, e.2, e.3), reached))))) AS p
        FROM exposed
        WHERE is_splittable = 0 AND is_exact = 0
    ),
    changes AS (  -- the same rows: differences
        SELECT
            multi_exposed,
            variation_id,
{{- range .Columns}}
            {{.}},
{{- end}}
            CAST(p.1, 'Enum8(\'active\' = 0, \'view\' = 1, \'click\' = 2, \'submit\' = 3, \'completion\' = 4, \'conversion\' = 5, \'contact\' = 6, \'goal\' = 7)') AS event,
            p.2                                                                AS goal_id,
            p.3                                                                AS first_day,
            p.4                                                                AS day,
            toInt64(p.5 = 0)                                                   AS visitors,
            toInt64(p.5 = 0 AND event = 'view' AND first_at >= {shares_since:Int64}) AS since_shares,
            p.6 - p.5                                                          AS events,
            toInt128(p.6) * p.6 - toInt128(p.5) * p.5                          AS events_squares,
            p.8 * p.6 - p.7 * p.5                                              AS value_times_goals,
            toInt256(p.8 - p.7) * above_squares + (p.8 * p.8 - p.7 * p.7)      AS value,
            toInt256(p.10 - p.9) * above_squares + (p.10 * p.10 - p.9 * p.9)   AS profit,
            toInt256(p.12 - p.11) * above_squares + (p.12 * p.12 - p.11 * p.11) AS extra_value,
            ((((
                toInt256(p.12 < 0) - (p.11 < 0)) * next_sign
                + toInt64(p.12 != 0) - (p.11 != 0)) * next_sign
                + toInt64(p.10 < 0) - (p.9 < 0)) * next_sign
                + toInt64(p.10 != 0) - (p.9 != 0)) * next_sign
                + toInt64(p.8 < 0) - (p.7 < 0)                                 AS upper_signs,
            upper_signs * next_sign + toInt64(p.8 != 0) - (p.7 != 0)           AS signs
        FROM placed
    )
-- one row per cube and cell: sums over its visitors
SELECT
    {bucket:UInt16}, {generation:UInt64}, {website_id:Int64}, {subject:String}, {subject_id:Int64}, {experiment_id:Int64}, 1,
    concat(
        transform(grouping(first_day, day, variation_id, multi_exposed, {{.Attributes}}), {masks:Array(UInt64)}, {cubes:Array(String)}, '') AS whole_cube,
        multiIf(
{{- range .Ranked}}
            whole_cube = '{{.}}' AND {{.}} IN {frequent_{{.}}:Array(String)}, ', frequent',
{{- end}}
            '')
    ) AS cube_name,
    event,
    multiIf(
{{- range .Ranked}}
        cube_name = '{{.}}, ranked', reinterpretAsInt64(xxHash64({{.}})),
{{- end}}
        goal_id) AS goal_or_hash,
    {{.Attributes}}, variation_id, multi_exposed, first_day, day,
    sum(c.visitors)             AS visitors,
    sum(c.since_shares)         AS since_shares,
    sum(c.events)               AS events,
    sum(c.events_squares)       AS events_squares,
    sum(c.value)                AS value,
    sum(c.value_times_goals)    AS value_times_goals,
    sum(c.profit)               AS profit,
    sum(c.extra_value)          AS extra_value,
    sum(c.signs)                AS signs
FROM changes AS c
GROUP BY GROUPING SETS ({{range $i, $set := .Sets}}{{if $i}},{{end}}
    (event, goal_id{{$set}}){{end}}
)
HAVING (event != 'active' OR endsWith(cube_name, ' by both days'))
    AND (event = 'view' OR NOT endsWith(cube_name, ', ranked'))
UNION ALL
-- one row: one insert of the cube 'state'
SELECT
    {bucket:UInt16}, {generation:UInt64}, {website_id:Int64}, {subject:String}, {subject_id:Int64}, {experiment_id:Int64}, 0,
    'state', 'active', 0,
{{- range .Columns}}
    '',
{{- end}}
    0, 0, toDate32(0), toDate32(0), 1, 0, 0, 0, 0, 0, 0, 0, 0
SETTINGS max_insert_threads = 1, min_insert_block_size_rows = 4000000000, min_insert_block_size_bytes = 4000000000000, async_insert = 0
