WITH
    seen AS (  -- one row per event that counts, except goals: its hour and kind, and its number among the visitor's events of the kind; and the markers
        SELECT
            segment,
            intDiv(toUnixTimestamp64Milli(first_time), 3600000) AS first_hour,
            {{- if .Widget}}
            arrayJoin(arrayMap(
                (hour, kind, number) -> (first_hour + hour, kind, number),
                arrayPushFront(later_hours, 0) AS hours,
                arrayPushFront(later_kinds, 1) AS kinds,
                arrayEnumerateUniq(kinds)
            ))                                              AS e
            {{- else}}
            arrayJoin(arrayPushFront(
                arrayMap(hour -> (first_hour + hour, 1, 2), arrayFilter((hour, kind) -> kind = 1, later_hours, later_kinds)),
                (first_hour, 1, 1)
            ))                                              AS e
            {{- end}}
        FROM exposures
        WHERE bucket = {bucket:UInt16}
            AND generation = {generation:UInt64}
            AND ({{.Committed}})
            AND ({{template "marker.sql"}} OR ({{.Filters}}){{if .From}} AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}{{end}}{{if .To}} AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64}{{end}})
    )
-- one row per bucket and segment: what the bucket adds to the sums; and one row for the markers
SELECT
    toInt64(segment) + 4294967296 * intDiv(e.1 * 3600000 + {shift:Int64}, {width:Int64}) AS key,
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
    AND e.1 * 3600000 < {to_ms:Int64}
{{- end}}
GROUP BY key
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0
