package schema

import "strings"

// VerifiedRelease is the ClickHouse release that the tests run on: embedded, as a
// server and as a cluster. The embedded engine has the same release.
const VerifiedRelease = "26.7"

// IsVerified reports whether a version of ClickHouse belongs to VerifiedRelease.
func IsVerified(version string) bool {
	return version == VerifiedRelease || strings.HasPrefix(version, VerifiedRelease+".")
}
