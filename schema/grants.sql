-- The database, a user that serves and a user that migrates. Both may be run again: what is there stays, but the passwords.
CREATE DATABASE IF NOT EXISTS {{.Database}}{{.On}};

-- Who serves reads and writes rows, and erases those of visitors and subjects; it makes no table and changes none.
CREATE USER IF NOT EXISTS {{.Serving}}{{.On}} DEFAULT DATABASE {{.Database}};

ALTER USER {{.Serving}}{{.On}} IDENTIFIED WITH sha256_hash BY {{.ServingHash}};

GRANT{{.On}} SELECT, INSERT, ALTER DELETE, CHECK ON {{.Database}}.* TO {{.Serving}};

-- What is sought is sent along with a query, as a temporary table.
GRANT{{.On}} CREATE TEMPORARY TABLE ON *.* TO {{.Serving}};

GRANT{{.On}} SELECT ON system.tables TO {{.Serving}};

GRANT{{.On}} SELECT ON system.parts TO {{.Serving}};

GRANT{{.On}} SELECT ON system.detached_parts TO {{.Serving}};

GRANT{{.On}} SELECT ON system.mutations TO {{.Serving}};

GRANT{{.On}} SELECT ON system.disks TO {{.Serving}};

-- Who migrates makes and changes tables too. It stays: the view that counts events inserts in its name.
CREATE USER IF NOT EXISTS {{.Migrating}}{{.On}} DEFAULT DATABASE {{.Database}};

ALTER USER {{.Migrating}}{{.On}} IDENTIFIED WITH sha256_hash BY {{.MigratingHash}};

GRANT{{.On}} SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON {{.Database}}.* TO {{.Migrating}};

-- A migration drops this table of earlier releases.
GRANT{{.On}} DROP TABLE ON {{.Database}}.settled TO {{.Migrating}};

GRANT{{.On}} CREATE TEMPORARY TABLE ON *.* TO {{.Migrating}};

GRANT{{.On}} SELECT ON system.tables TO {{.Migrating}};
{{- range .Engines}}

GRANT{{$.On}} TABLE ENGINE ON {{.}} TO {{$.Migrating}};
{{- end}}
{{- if .On}}

-- Who opens the store reads what other servers were told last.
GRANT{{.On}} SYSTEM SYNC REPLICA ON {{.Database}}.* TO {{.Serving}}, {{.Migrating}};

-- A cluster's statements go from server to server.
GRANT{{.On}} CLUSTER, REMOTE ON *.* TO {{.Serving}}, {{.Migrating}};

GRANT{{.On}} SELECT ON system.clusters TO {{.Serving}}, {{.Migrating}};
{{- end}}
