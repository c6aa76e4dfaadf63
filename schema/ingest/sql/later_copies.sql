-- One row per copy of an event except the first copy, of events accepted since a time and of one slice of the visitors.
SELECT
    website_id,
    toString(subject)   AS of,
    subject_id,
    experiment_id,
    visitor_id,
    event_id,
    copy.2              AS writer,
    copy.3              AS ingested_at,
    toString(copy.4)    AS kind,
    copy.5              AS goal_id,
    copy.6              AS value,
    copy.7              AS extra_value
FROM
(
    -- one row per event with several copies
    SELECT
        website_id, subject, subject_id, experiment_id, visitor_id, event_id,
        arraySort(groupUniqArray((_block_number, writer, ingested_at, event, goal_id, value, extra_value))) AS copies
    FROM events
    WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
        AND (website_id, subject, subject_id, experiment_id, visitor_id, event_id) GLOBAL IN
        (
            -- To count the copies of all events takes a fourth of the time that it takes to collect them.
            SELECT website_id, subject, subject_id, experiment_id, visitor_id, event_id
            FROM events
            WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
                AND visitor_id % {slices:UInt64} = {slice:UInt64}
            GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
            HAVING count() > 1
        )
    GROUP BY website_id, subject, subject_id, experiment_id, visitor_id, event_id
    HAVING count() > 1
)
ARRAY JOIN arraySlice(copies, 2) AS copy
