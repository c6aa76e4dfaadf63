{{.Goals}}
    AND ({{.Filters}})
    {{- if .AboveCap}}
    AND greatest(value_before, value_before + value) > {cap:Int64}
    {{- end}}
    {{- if .Crossers}}
    AND multi_exposed_at != toDateTime64(0, 3)
    {{- end}}
    {{- if .From}}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
    {{- end}}
    {{- if .To}}
    AND toUnixTimestamp64Milli(first_time){{if not .OnFirstView}} + since_ms{{end}} < {to_ms:Int64}
    {{- end}}
    {{- if .Window}}
    AND since_ms < {age_to_ms:UInt64}{{if .AgeFrom}} AND since_ms >= {age_from_ms:UInt64}{{end}}
    {{- end}}
    {{- if .Mature}}
    AND toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}
    {{- end}}