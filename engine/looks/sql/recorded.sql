-- the recorded rows of all declarations, or of one, one row per look and variation; of several, the first one
SELECT
    website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, toString(kind), variation_id, look,
    ended_at, body, recorded_at
FROM looks
WHERE {all:Bool}
    OR website_id = {website:Int64} AND subject = {subject:String} AND subject_id = {id:Int64}
    AND experiment_id = {experiment:Int64} AND question = {question:UInt64}
ORDER BY website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, kind, variation_id, look, recorded_at, body
LIMIT 1 BY website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, kind, variation_id, look
