{{range .Keys}}{{.Value}}{{if ne .Name (print .Value)}} AS {{.Name}}{{end}},
    {{end}}