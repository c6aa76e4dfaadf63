package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// VerifiedRelease is the release of ClickHouse that the tests run on, embedded, as a
// server and as a cluster. It is also the embedded engine.
const VerifiedRelease = "26.7"

// ServerVersion is the version of ClickHouse on a server.
type ServerVersion struct {
	Host    string `ch:"host"`
	Version string `ch:"version"`
}

// Verified reports whether the version is one of VerifiedRelease.
func (v ServerVersion) Verified() bool {
	return v.Version == VerifiedRelease || strings.HasPrefix(v.Version, VerifiedRelease+".")
}

// Versions returns the versions of all available servers of the store, ordered by host.
func Versions(ctx context.Context, conn driver.Conn) (found []ServerVersion, err error) {
	from := "system.one"
	if cluster, _ := Cluster(conn); cluster != "" {
		from = "clusterAllReplicas(" + identifier(cluster) + ", system.one)"
	}
	err = conn.Select(ctx, &found, "SELECT hostName() AS host, version() AS version FROM "+from+" ORDER BY host SETTINGS skip_unavailable_shards = 1")
	if err != nil {
		return nil, fmt.Errorf("read the versions of the servers: %w", err)
	}
	return found, nil
}
