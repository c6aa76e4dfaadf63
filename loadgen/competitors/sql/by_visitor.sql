-- The events of one campaign, ordered by visitor as in Lifthouse's table. One row is an event.
CREATE TABLE {{.Events}}
ENGINE = MergeTree
ORDER BY (website_id, visitor_id, subject, subject_id, time)
AS {{template "campaign_events.sql" .}}
