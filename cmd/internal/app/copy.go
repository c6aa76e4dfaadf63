package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lifthouse/engine/looks"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Copied is the result of CopyFrom.
type Copied struct {
	Catalogue int // rows
	Looks     int // rows
	Messages  int
	Events    uint64 // rows
}

// CopyFrom adds the catalogue, the recorded looks, the messages to webhooks and the events of another store. It only reads
// the other store. progress is called after each insert of events.
func (s *Store) CopyFrom(ctx context.Context, from schema.Address, progress func(done, total uint64)) (copied Copied, err error) {
	conn, closeSource, err := openSource(ctx, from)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	if copied.Catalogue, err = s.Catalogue.CopyFrom(ctx, conn); err != nil {
		return copied, err
	}
	if copied.Looks, err = looks.CopyRecords(ctx, s.Conn, conn); err != nil {
		return copied, err
	}
	var accounts []int64
	for _, owned := range s.Catalogue.Snapshot().AllAccounts() {
		accounts = append(accounts, owned.ID)
	}
	if copied.Messages, err = s.Outbox.CopyFrom(ctx, conn, accounts); err != nil {
		return copied, err
	}
	copied.Events, err = ingest.CopyEvents(ctx, s.Writer, conn, progress)
	return copied, err
}

// openSource opens a store for reading and does not change it.
func openSource(ctx context.Context, from schema.Address) (_ driver.Conn, closeSource func() error, err error) {
	closeEngine := func() error { return nil }
	if from.Dir != "" {
		held, err := OpenEmbedded(ctx, from.Dir, false, 0)
		if err != nil {
			return nil, nil, err
		}
		closeEngine = held.Close
		if from.Options, err = EmbeddedOptions(ctx, held); err != nil {
			return nil, nil, errors.Join(err, closeEngine())
		}
	}
	conn, err := schema.OpenConnection(ctx, from)
	if err != nil {
		return nil, nil, errors.Join(err, closeEngine())
	}
	closeSource = func() error { return errors.Join(conn.Close(), closeEngine()) }
	if err := checkSource(ctx, conn); err != nil {
		return nil, nil, errors.Join(err, closeSource())
	}
	return conn, closeSource, nil
}

// checkSource returns an error if a store does not have the tables of this release.
func checkSource(ctx context.Context, conn driver.Conn) error {
	if err := schema.CheckTableForm(ctx, conn); err != nil {
		return err
	}
	pending, err := schema.PendingMigrations(ctx, conn)
	switch {
	case err != nil:
		return err
	case len(pending) > 0:
		return fmt.Errorf("the store to copy has pending migrations: %s: run lifthouse migrate on it first", strings.Join(pending, ", "))
	}
	return nil
}
