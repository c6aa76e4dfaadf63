section = {visitors:UInt64}
    AND ({{.Filters}})