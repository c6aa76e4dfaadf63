package schema

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// backupDatabase is the name of the database within a backup, whatever its name in the store.
const backupDatabase = "lifthouse"

// WriteBackup writes all tables of the store to a new folder dir, an absolute path. It copies the tables one after the
// other, so nothing may write to the store until it returns.
func WriteBackup(ctx context.Context, conn driver.Conn, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("back up: %s exists already; use a new folder", dir)
	}
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	err = conn.Exec(ctx, fmt.Sprintf("BACKUP DATABASE %s AS %s TO File(%s)", quoteIdentifier(database), backupDatabase,
		quoteString(dir)))
	return WrapError(err, "back up")
}

// RestoreBackup restores the tables of a backup into a store without tables.
func RestoreBackup(ctx context.Context, conn driver.Conn, dir string) error {
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	err = conn.Exec(ctx, fmt.Sprintf("RESTORE DATABASE %s AS %s FROM File(%s)", backupDatabase,
		quoteIdentifier(database), quoteString(dir)))
	return WrapError(err, "restore")
}

func currentDatabase(ctx context.Context, conn driver.Conn) (string, error) {
	var name string
	err := conn.QueryRow(ctx, "SELECT currentDatabase()").Scan(&name)
	return name, WrapError(err, "read the store's database")
}

var escaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "`", "\\`")

func quoteIdentifier(name string) string { return "`" + escaper.Replace(name) + "`" }

func quoteString(text string) string { return "'" + escaper.Replace(text) + "'" }
