-- The events of one campaign, ordered by time as in a typical data warehouse. One row is an event.
CREATE TABLE {{.Events}}
ENGINE = MergeTree
PARTITION BY toYYYYMM(time)
ORDER BY (website_id, subject, subject_id, time)
AS {{template "campaign_events.sql" .}}
