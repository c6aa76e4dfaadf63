INSERT INTO rollups
(
    website_id, subject, subject_id, experiment_id, generation, cube_name,
    state_layout, state_shares_since, state_events, state_through, state_newest
)
SELECT
    {website_id:Int64}, {subject:String}, {subject_id:Int64}, {experiment_id:Int64}, {generation:UInt64}, 'state',
    {layout:UInt32}, {shares_since:Int64}, {events:Int64}, {through:DateTime64(3, 'UTC')}, {newest:DateTime64(3, 'UTC')}
SETTINGS async_insert = 0
