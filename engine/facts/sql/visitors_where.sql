section = {visitors:UInt64}
    AND ({{.Filters}})
    {{- if .OnlyImmature}}
    AND toUnixTimestamp64Milli(first_time) > {mature_ms:Int64}
    {{- end}}
    {{- if .Crossers}}
    AND multi_exposed_at != toDateTime64(0, 3)
    {{- end}}