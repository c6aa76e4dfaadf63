{{if .}}sum(toInt128(sign * {{.}})), sum(toInt128(sign * {{.}}) * (2 * {{.}}_before + {{.}})),
    sum(sign * (toInt64({{.}}_before + {{.}} != 0) - toInt64({{.}}_before != 0))), sum(sign * (toInt64({{.}}_before + {{.}} < 0) - toInt64({{.}}_before < 0)))
{{- else}}toInt128(0), toInt128(0), toInt64(0), toInt64(0){{end}}