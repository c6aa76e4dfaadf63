WITH
    {{template "exact.sql" .}}
{{template "sums.sql" .}}
