package schema

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const embeddedPrefix = "embedded:"

// DefaultStore is the store of a first start: in this process, below the
// working directory.
const DefaultStore = embeddedPrefix + "./data"

// Home says where a store lives: in a directory of this machine, held by this
// process, or on a ClickHouse server.
type Home struct {
	Dir     string              // of an embedded store; empty for a server
	Options *clickhouse.Options // of a server; nil for an embedded store
}

// ShowAddress is the address without what may be secret: scheme, host and
// path, but no user, password or query.
func ShowAddress(address string) string {
	if strings.HasPrefix(address, embeddedPrefix) {
		return address
	}
	scheme, rest, ok := strings.Cut(address, "://")
	u, err := url.Parse(address)
	switch {
	case !ok && !strings.Contains(address, "@"):
		return address
	case !ok:
		return "…"
	case err != nil || strings.Count(rest, "@") > 1 || u.User == nil && strings.Contains(rest, "@"):
		return scheme + "://…" // a password that is not percent-encoded may be anywhere
	}
	return scheme + "://" + u.Host + u.EscapedPath()
}

// ParseHome reads a store's address: embedded:DIR, clickhouse://…, http://… or
// https://….
func ParseHome(address string) (Home, error) {
	if dir, ok := strings.CutPrefix(address, embeddedPrefix); ok {
		if dir == "" {
			return Home{}, errors.New(`store "embedded:": the directory is missing; write embedded:DIR`)
		}
		return Home{Dir: dir}, nil
	}
	scheme, _, ok := strings.Cut(address, "://")
	if !ok || (scheme != "clickhouse" && scheme != "http" && scheme != "https") {
		return Home{}, fmt.Errorf("store %q: want embedded:DIR, clickhouse://user:pass@host:9000/db, http://… or https://…", ShowAddress(address))
	}
	if scheme == "https" && !strings.Contains(address, "secure=") {
		address += separator(address) + "secure=true" // the driver asks for it, though the scheme says it
	}
	if _, err := url.Parse(address); err != nil { // which may quote the password
		return Home{}, fmt.Errorf("store %s: want %s://user:pass@host:port/db, with special characters of the password percent-encoded", ShowAddress(address), scheme)
	}
	options, err := clickhouse.ParseDSN(address)
	if err != nil {
		return Home{}, fmt.Errorf("store %s://…: %w", scheme, err)
	}
	if _, ok := options.Settings["cluster"]; ok {
		return Home{}, errors.New("store: cluster=… is not supported yet")
	}
	return Home{Options: options}, nil
}

func separator(address string) string {
	if strings.Contains(address, "?") {
		return "&"
	}
	return "?"
}

// writeSettings hold for every statement of ours. ClickHouse 26 buffers
// inserts by default, which would acknowledge rows that are not yet stored; and
// a file may span more months than the 100 partitions a block may have.
func writeSettings() clickhouse.Settings {
	return clickhouse.Settings{"async_insert": 0, "max_partitions_per_insert_block": 0}
}

// Connect opens the store behind the options, checks that it answers and
// brings its tables up to date.
func Connect(ctx context.Context, options *clickhouse.Options) (driver.Conn, error) {
	conn, err := Reach(ctx, options)
	if err != nil {
		return nil, err
	}
	if _, err := Migrate(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Reach opens the store behind the options and checks that it answers.
func Reach(ctx context.Context, options *clickhouse.Options) (driver.Conn, error) {
	settings := writeSettings()
	for name, value := range options.Settings {
		settings[name] = value
	}
	with := *options
	with.Settings = settings
	conn, err := clickhouse.Open(&with)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := conn.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reach store: %w", err), conn.Close())
	}
	return conn, nil
}
