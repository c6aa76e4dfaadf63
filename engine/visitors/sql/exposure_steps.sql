WITH
    seen AS (  -- one row per event that counts, except goals: its hour and kind, and its number among the visitor's events of the kind; and the markers
        SELECT
            segment,
            arrayJoin(arrayMap(
                (hour, kind, number) -> (intDiv(toUnixTimestamp64Milli(first_time), 3600000) + hour, kind, number),
                arrayPushFront(later_hours, 0) AS hours,
                arrayPushFront(later_kinds, 1) AS kinds,
                arrayEnumerateUniq(kinds)
            ))                                              AS e
        FROM exposures
        WHERE bucket = {bucket:UInt16}
            AND generation = {generation:UInt64}
            AND ({{.Committed}})
            AND (segment = 255 OR ({{.Filters}}){{if .From}} AND first_time >= toDateTime64({from:String}, 3, 'UTC'){{end}}{{if .To}} AND first_time < toDateTime64({to:String}, 3, 'UTC'){{end}})
    )
-- one row per bucket and segment: what the bucket adds to the sums; and one row for the markers
SELECT
    intDiv(e.1 * 3600000 + {shift:Int64}, {width:Int64})              AS at,
    segment,
    countIf(e.2 = 1 AND e.3 = 1)                            AS visitors,
    countIf(e.2 = 1)                                        AS views,
    countIf(e.2 = 2)                                        AS clicks,
    countIf(e.2 = 3)                                        AS submits,
    countIf(e.2 = 4)                                        AS completions,
    countIf(e.2 = 5)                                        AS conversions,
    countIf(e.2 = 6)                                        AS contacts,
    countIf(e.2 = 4 AND e.3 = 1)                            AS completed_visitors,
    countIf(e.2 = 5 AND e.3 = 1)                            AS conversion_visitors
FROM seen
WHERE e.2 {{if .Widget}}<= 6{{else}}= 1{{end}}
{{- if .To}}
    AND e.1 < {to_hour:Int64}
{{- end}}
GROUP BY at, segment
