-- One row: how many events were accepted since a time, and by how many processes.
SELECT
    count()            AS events,
    uniqExact(writer)  AS writers
FROM events
WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
