-- The database of one ClickHouse server, its serving user and its migrating user, with the least privileges. The
-- statements can be run again: existing objects are kept, and the passwords are replaced. Set the passwords first:
--
--   SET param_serving_password = '…', param_migrating_password = '…';
CREATE DATABASE IF NOT EXISTS lifthouse;

-- The serving user reads, inserts and deletes rows, and merges facts after visitors are erased. It cannot create or
-- alter tables. lifthouse facts --rebuild deletes all facts first.
CREATE USER IF NOT EXISTS lifthouse DEFAULT DATABASE lifthouse;

ALTER USER lifthouse IDENTIFIED WITH sha256_password BY {serving_password:String};

GRANT SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON lifthouse.*, TRUNCATE ON lifthouse.facts TO lifthouse;

GRANT SELECT ON system.tables, SELECT ON system.parts, SELECT ON system.detached_parts, SELECT ON system.build_options TO lifthouse;

-- The migrating user also creates and alters tables.
CREATE USER IF NOT EXISTS lifthouse_migrating DEFAULT DATABASE lifthouse;

ALTER USER lifthouse_migrating IDENTIFIED WITH sha256_password BY {migrating_password:String};

GRANT SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON lifthouse.* TO lifthouse_migrating;

GRANT TABLE ENGINE ON MergeTree, TABLE ENGINE ON ReplacingMergeTree, TABLE ENGINE ON CollapsingMergeTree TO lifthouse_migrating;

GRANT SELECT ON system.tables TO lifthouse_migrating;

-- A process that opens the store waits for unfinished deletions of facts.
GRANT SELECT ON system.mutations TO lifthouse, lifthouse_migrating;
