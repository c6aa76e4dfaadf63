{{- /* columns of a visitor: the number of events until the end of the window, by kind; of a campaign, only views */}}
{{- define "later"}}arrayCount((ms, kind) -> kind = {{.}} AND toUnixTimestamp64Milli(first_time) + ms < {to_ms:Int64}, later_ms, later_kinds){{end -}}
toUInt32(1 + {{template "later" 1}}) AS views{{if .Widget}}, toUInt32({{template "later" 2}}) AS clicks, toUInt32({{template "later" 3}}) AS submits, toUInt32({{template "later" 4}}) AS completions, toUInt32({{template "later" 5}}) AS conversions, toUInt32({{template "later" 6}}) AS contacts{{end}}
