-- Copy of the events of one campaign, ordered by time as in a typical data warehouse. One row is an event.
CREATE TABLE {{.Events}} AS events
ENGINE = MergeTree
PARTITION BY toYYYYMM(time)
PRIMARY KEY (website_id, subject, subject_id, time)
ORDER BY (website_id, subject, subject_id, time)
