-- The database, a serving user and a migrating user. The statements can be run again: existing objects are kept, and the
-- passwords are replaced.
CREATE DATABASE IF NOT EXISTS {{.Database}}{{.On}};

-- The serving user reads, inserts and deletes rows, and merges facts after visitors are erased. It cannot create or alter
-- tables.
CREATE USER IF NOT EXISTS {{.Serving}}{{.On}} DEFAULT DATABASE {{.Database}};

ALTER USER {{.Serving}}{{.On}} IDENTIFIED WITH sha256_hash BY {{.ServingHash}};

GRANT{{.On}} SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON {{.Database}}.* TO {{.Serving}};

-- lifthouse facts --rebuild deletes all facts first.
GRANT{{.On}} TRUNCATE ON {{.Database}}.facts{{if .On}}_local{{end}} TO {{.Serving}};

GRANT{{.On}} SELECT ON system.tables TO {{.Serving}};

GRANT{{.On}} SELECT ON system.parts TO {{.Serving}};

GRANT{{.On}} SELECT ON system.detached_parts TO {{.Serving}};

GRANT{{.On}} SELECT ON system.disks TO {{.Serving}};

GRANT{{.On}} SELECT ON system.build_options TO {{.Serving}};

-- The migrating user also creates and alters tables.
CREATE USER IF NOT EXISTS {{.Migrating}}{{.On}} DEFAULT DATABASE {{.Database}};

ALTER USER {{.Migrating}}{{.On}} IDENTIFIED WITH sha256_hash BY {{.MigratingHash}};

GRANT{{.On}} SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON {{.Database}}.* TO {{.Migrating}};

GRANT{{.On}} SELECT ON system.tables TO {{.Migrating}};

-- A process that opens the store waits for unfinished deletions of facts.
GRANT{{.On}} SELECT ON system.mutations TO {{.Serving}}, {{.Migrating}};
{{- range .Engines}}

GRANT{{$.On}} TABLE ENGINE ON {{.}} TO {{$.Migrating}};
{{- end}}
{{- if .On}}

-- Commands wait for the latest rows of other replicas when they open the store.
GRANT{{.On}} SYSTEM SYNC REPLICA ON {{.Database}}.* TO {{.Serving}}, {{.Migrating}};

-- Statements on a cluster are forwarded from server to server.
GRANT{{.On}} CLUSTER, REMOTE ON *.* TO {{.Serving}}, {{.Migrating}};

GRANT{{.On}} SELECT ON system.clusters TO {{.Serving}}, {{.Migrating}};

GRANT{{.On}} SELECT ON system.one TO {{.Serving}}, {{.Migrating}};
{{- end}}
