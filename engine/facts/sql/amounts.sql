sum(toInt128({{.}}))                                    AS {{.}}_sum,
    sum(toInt128({{.}}) * (2 * {{.}}_before + {{.}}))       AS {{.}}_squares,
    sum(toInt64({{.}}_before + {{.}} != 0) - toInt64({{.}}_before != 0)) AS {{.}}_nonzero,
    sum(toInt64({{.}}_before + {{.}} < 0) - toInt64({{.}}_before < 0)) AS {{.}}_negative