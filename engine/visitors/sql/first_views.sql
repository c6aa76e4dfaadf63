keyed AS (  -- one row per event of the visitors in the range: sort key as one number, attributes as one string
        SELECT
            *,
            toUnixTimestamp64Milli(time)                                                           AS at,
            bitOr(
                bitShiftLeft(toUInt256(at), 128),
                bitOr(bitShiftLeft(toUInt256(reinterpretAsUInt64(variation_id) + 9223372036854775808), 64), toUInt256(event_id))
            )                                                                                      AS place,
            concat({{.AsOne}})                                                                     AS shows
        FROM {{.Order.Events}}
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
            AND {{.Order.Until}}
            AND visitor_id BETWEEN {first_visitor:UInt64} AND {last_visitor:UInt64}
    ),
    first_views AS (  -- one row per visitor with a view: the first view (minimum by time, variation and id), and all events
        SELECT
            visitor_id,
            splitByChar('\0', argMinIf(shows, place, event = 'view'))                              AS shown,
            minIf(place, event = 'view')                                                           AS first_place,
            toInt64(bitShiftRight(first_place, 128))                                               AS first_at,
            reinterpretAsInt64(toUInt64(bitAnd(bitShiftRight(first_place, 64), toUInt256(18446744073709551615))) + 9223372036854775808) AS variation_id,
            minIf(keyed.variation_id, event = 'view') != maxIf(keyed.variation_id, event = 'view') AS multi_exposed,
            {{.Events}}                                                                            AS events
        FROM keyed
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    )