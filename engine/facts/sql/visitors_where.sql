{{template "subject.sql"}}
    AND grain = 'visitor'
    AND goal_id = 0
    AND ({{.Filters}})