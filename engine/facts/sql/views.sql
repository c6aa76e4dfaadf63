{{if .Recent}}sumIf(sign, first_day >= {recent_from:Date} AND first_day < {recent_to:Date}) AS visitors_recent,
    {{end}}sum(sign * views)                                       AS all_views