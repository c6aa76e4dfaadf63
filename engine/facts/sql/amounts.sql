toInt128(sum({{.Type}}(sign * {{.Column}}))), toInt128(sum({{.Type}}(sign * {{.Column}}) * (2 * {{.Column}}_before + {{.Column}}))),
    {{if .HasZero}}sum(sign * (({{.Column}}_before + {{.Column}} != 0) - ({{.Column}}_before != 0))){{else}}converted_visitors{{end}},
    {{if .HasNegative}}sum(sign * (({{.Column}}_before + {{.Column}} < 0) - ({{.Column}}_before < 0))){{else}}toInt64(0){{end}}