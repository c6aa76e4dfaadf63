{{- /* what a cap removes from the sums, of a visitor with the total value .V and the total profit .P */}}
{{- define "capped"}}toInt64({{.V}} > {cap:Int64}){{end}}
{{- define "value_removed"}}if({{.V}} > {cap:Int64}, toInt256({{.V}}) - {cap:Int64}, toInt256(0)){{end}}
{{- define "value_squares_removed"}}if({{.V}} > {cap:Int64}, toInt256({{.V}}) * {{.V}} - toInt256({cap:Int64}) * {cap:Int64}, toInt256(0)){{end}}
{{- define "profit_squares_removed"}}if({{.V}} > {cap:Int64}, (toInt256({{.V}}) - {cap:Int64}) * (2 * toInt256({{.P}}) - {{.V}} + {cap:Int64}), toInt256(0)){{end}}
{{- define "profit_nonzero_removed"}}if({{.V}} > {cap:Int64}, toInt64({{.P}} != 0) - toInt64({{.P}} != {{.V}} - {cap:Int64}), toInt64(0)){{end}}
{{- define "profit_negative_removed"}}if({{.V}} > {cap:Int64}, toInt64({{.P}} < 0) - toInt64({{.P}} < {{.V}} - {cap:Int64}), toInt64(0)){{end}}
