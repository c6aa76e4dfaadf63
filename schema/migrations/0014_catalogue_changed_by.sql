-- Who made a change: a token of the API, or a command and the user who gave it.
ALTER TABLE catalogue
    ADD COLUMN IF NOT EXISTS changed_by String COMMENT 'token or command'
