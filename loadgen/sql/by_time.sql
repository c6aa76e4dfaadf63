-- A copy of the events of one campaign as a warehouse keeps them: one row is an event, ordered by time.
CREATE TABLE {{.Table}} AS events
ENGINE = MergeTree
PARTITION BY toYYYYMM(time)
PRIMARY KEY (website_id, subject, subject_id, time)
ORDER BY (website_id, subject, subject_id, time)
