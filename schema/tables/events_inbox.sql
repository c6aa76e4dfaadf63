-- The table into which other ClickHouse clients insert events: one row per event, with Lifthouse's fields. Within a
-- second, a serving process moves the rows to events, with the checks of POST /events, and drops them here. An invalid
-- row is dropped, and the log has the reason.
--
-- An event with several exposures is several rows with the same event_id. Omitted columns are unset.
-- No ORDER BY: rows are read in the order of arrival, and the first row of an identity counts.
-- Whole parts are dropped, so parts must not be merged before. Merges begin only if so many parts accumulate that
-- apparently no process moves them.
CREATE TABLE IF NOT EXISTS events_inbox{{.On}}
(
    website_id       Int64                 COMMENT 'has to be in the catalogue',
    event_id         String                COMMENT 'as sent; where empty, each row is an event of its own, also one that is inserted twice',
    time             DateTime64(3, 'UTC')  COMMENT 'of the event',
    visitor          String                COMMENT 'id of the visitor, any text; empty: only of a goal or a customer',
    event            String                COMMENT 'view, click, submit, completion, conversion, contact, goal or customer',
    campaign_id      String                COMMENT 'what the visitor saw: id or key of a campaign; numbers are accepted too',
    widget_id        Nullable(Int64)       COMMENT 'or a widget; of neither, a goal counts for all that its visitor saw',
    experiment_id    Nullable(Int64)       COMMENT 'of the widget; not given: none',
    variation_id     String                COMMENT 'id or key of what the visitor saw; 0 or control: control',
    goal_id          String                COMMENT 'id or key of the goal of an event goal',
    value            String                COMMENT 'amount, a decimal number of any length, rounded half away from zero to 4 decimals; a String so that no float is involved; numbers are accepted too',
    profit           String                COMMENT 'as value',
    extra_value      String                COMMENT 'as value',
    currency         String                COMMENT 'of the amounts, such as EUR; empty: that of the website',
    customer         String                COMMENT 'of a goal: the shop''s id or the e-mail of the buyer; stored as a hash. A goal without exposures may then have no visitor',
    device           String,
    browser          String,
    os               String,
    country          String                COMMENT 'two letters',
    region           String,
    city             String,
    channel          String,
    referrer         String,
    utm_source       String,
    utm_medium       String,
    utm_campaign     String,
    utm_content      String,
    utm_term         String,
    first_visit_page String,
    visitor_type     String                COMMENT 'new, returning or empty',
    revision         String                COMMENT 'of a goal: of several with one event_id, the state of the highest one counts; numbers are accepted too',
    cancelled        String                COMMENT 'of a goal: true if it does not count; booleans are accepted too',
    attributes       String                COMMENT 'own attributes of the visitor: a JSON object of names and texts or booleans',
    properties       String                COMMENT 'of a goal: a JSON object of names and texts, booleans or numbers',
    items            String                COMMENT 'lines of the order that a goal is: a JSON array of objects',
    row_id           UUID MATERIALIZED generateUUIDv4() COMMENT 'ours: the id of an event without one, the same however often the row is moved'
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY tuple()
SETTINGS min_parts_to_merge_at_once = 500, max_parts_to_merge_at_once = 1000, parts_to_delay_insert = 5000, parts_to_throw_insert = 10000
