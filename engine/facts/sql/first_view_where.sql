    {{- if .From}}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
    {{- end}}
    {{- if .To}}
    AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64}
    {{- end}}
    {{- if .Mature}}
    AND toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}
    {{- end}}