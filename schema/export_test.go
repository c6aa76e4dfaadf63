package schema

// MigrateFrom is Migrate with other files.
var MigrateFrom = migrate
