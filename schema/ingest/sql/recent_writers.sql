-- One row: the number of events accepted since a time, and the number of processes that accepted them.
SELECT
    count()            AS events,
    uniqExact(writer)  AS writers
FROM events
WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
