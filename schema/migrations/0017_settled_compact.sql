-- A report reads a few granules of nearly all columns: in one file, where a granule's columns lie side by side, it opens one
-- file instead of thirty, for a fifth less time.
ALTER TABLE settled MODIFY SETTING min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000
