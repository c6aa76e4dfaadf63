WITH
    seen AS (  -- one row per counted event other than goals: time, kind, and number among the visitor's events of this kind
        SELECT
            toUInt32({{.Place}})                            AS place,
            sign                                            AS of_sign,
            {{.Period}}                                     AS of_period,
            {{.Crossed}}                                    AS of_crossing,
            {{- if .Widget}}
            arrayJoin(arrayMap(
                (ms, kind, number) -> (toUnixTimestamp64Milli(first_time) + ms, kind, number),
                arrayPushFront(later_ms, 0),
                arrayPushFront(later_kinds, 1) AS kinds,
                arrayEnumerateUniq(kinds)
            ))                                              AS e
            {{- else}}
            arrayJoin(arrayPushFront(
                arrayMap(ms -> (toUnixTimestamp64Milli(first_time) + ms, 1, 2), arrayFilter((ms, kind) -> kind = 1, later_ms, later_kinds)),
                (toUnixTimestamp64Milli(first_time), 1, 1)
            ))                                              AS e
            {{- end}}
        FROM {{.Facts}}
        WHERE {{template "visitors_where.sql" .}}
            {{- template "first_view_where.sql" .}}
    )
-- one row per place, bucket, period of equal shares and crossing: the sums that the bucket adds
SELECT
    place,
    false                                                   AS exposed_before,
    toInt64(intDiv(e.1 + {shift:Int64}, {width:Int64}))     AS bucket,
    of_period                                               AS period,
    of_crossing                                             AS crossed,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 = 1))             AS visitors,
    toInt64(0)                                              AS visitors_recent,
    sum(of_sign * toInt64(e.2 = 1))                         AS views
{{- if .Widget}},
    sum(of_sign * toInt64(e.2 = 2))                         AS clicks,
    sum(of_sign * toInt64(e.2 = 3))                         AS submits,
    sum(of_sign * toInt64(e.2 = 4))                         AS completions,
    sum(of_sign * toInt64(e.2 = 5))                         AS conversions,
    sum(of_sign * toInt64(e.2 = 6))                         AS contacts,
    sum(of_sign * toInt64(e.2 = 4 AND e.3 = 1))             AS completed_visitors,
    sum(of_sign * toInt64(e.2 = 5 AND e.3 = 1))             AS conversion_visitors
{{- end}}
FROM seen
WHERE e.2 {{if .Widget}}<= 6{{else}}= 1{{end}}
{{- if .To}}
    AND e.1 < {to_ms:Int64}
{{- end}}
GROUP BY place, bucket, period, crossed
{{template "settings.sql" .}}
