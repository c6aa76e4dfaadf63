-- Rows keep, through merges, the number of the insert that brought them: of copies that several servers wrote, the
-- least came first.
ALTER TABLE events MODIFY SETTING enable_block_number_column = 1
