package schema

import "strings"

// VerifiedRelease is the release of ClickHouse that the tests run on, embedded, as a
// server and as a cluster. It is also the embedded engine.
const VerifiedRelease = "26.7"

// IsVerified reports whether a version of ClickHouse is one of VerifiedRelease.
func IsVerified(version string) bool {
	return version == VerifiedRelease || strings.HasPrefix(version, VerifiedRelease+".")
}
