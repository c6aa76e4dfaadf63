package ingest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
)

//go:embed sql/delivered.sql
var delivered string

// ErrKeyReused means that the idempotency key was used before with another body.
var ErrKeyReused = errors.New("the idempotency key was used before with another body")

// Deliveries stores the digest of the request body for each idempotency key.
type Deliveries struct {
	conn  driver.Conn
	locks [64]sync.Mutex // by hash of the key, to serialize requests with the same key
}

// NewDeliveries returns the deliveries of a store.
func NewDeliveries(conn driver.Conn) *Deliveries { return &Deliveries{conn: conn} }

// Bind binds the key to the digest of a body, and must be called before the
// events of the body are written. It returns ErrKeyReused if the key is bound to
// another body. If two servers receive the same key with different bodies at the
// same time, both may accept it.
func (d *Deliveries) Bind(ctx context.Context, websiteID int64, key string, body [sha256.Size]byte) error {
	lock := &d.locks[schema.Hash(strconv.FormatInt(websiteID, 10)+":"+key)%uint64(len(d.locks))]
	lock.Lock()
	defer lock.Unlock()
	if bound, err := d.isBound(ctx, websiteID, key, body); bound || err != nil {
		return err
	}
	if err := d.insert(context.WithoutCancel(ctx), websiteID, key, body); err != nil {
		return fmt.Errorf("bind idempotency key: %w", err)
	}
	_, err := d.isBound(ctx, websiteID, key, body)
	return err
}

// isBound reports whether the key is bound to the body. It returns ErrKeyReused
// if the key is bound to another body.
func (d *Deliveries) isBound(ctx context.Context, websiteID int64, key string, body [sha256.Size]byte) (bool, error) {
	var digest string
	err := d.conn.QueryRow(ctx, delivered, clickhouse.Named("website_id", websiteID), clickhouse.Named("key", key)).Scan(&digest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up idempotency key: %w", err)
	case digest != string(body[:]):
		return true, ErrKeyReused
	}
	return true, nil
}

func (d *Deliveries) insert(ctx context.Context, websiteID int64, key string, body [sha256.Size]byte) error {
	return schema.InsertRows(ctx, d.conn, "INSERT INTO deliveries (website_id, key, digest, accepted_at)", [][sha256.Size]byte{body}, func(body *[sha256.Size]byte) []any {
		return []any{websiteID, key, string(body[:]), time.Now().UTC()}
	})
}
