-- The table rollups replaces it. Its content is computed from the events.
DROP TABLE IF EXISTS settled SYNC
