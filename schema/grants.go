package schema

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strings"
)

//go:embed grants.sql
var grantsText string

// User is a ClickHouse user.
type User struct{ Name, Password string }

// Grants describes the database and its two users, with the least privileges that Lifthouse needs.
type Grants struct {
	Database  string
	Cluster   string // empty: one server
	Serving   User   // user of lifthouse serve, and of all commands except migrate
	Migrating User   // user of lifthouse migrate
}

// engines are the engines of the tables.
var engines = []string{"MergeTree", "ReplacingMergeTree", "CollapsingMergeTree"}

// SQLStatements returns the statements that create the database and the users, each with a comment that explains it.
// They contain the SHA-256 digests of the passwords, not the passwords.
func (g Grants) SQLStatements() ([]string, error) {
	slots := struct {
		Database, On, Serving, ServingHash, Migrating, MigratingHash string
		Engines                                                      []string
	}{
		Database: quoteIdentifier(g.Database), On: formOf(g.Cluster, false).On,
		Serving:     quoteIdentifier(g.Serving.Name),
		Migrating:   quoteIdentifier(g.Migrating.Name),
		ServingHash: passwordDigest(g.Serving.Password), MigratingHash: passwordDigest(g.Migrating.Password),
		Engines: engines,
	}
	if g.Cluster != "" {
		slots.Engines = []string{"Distributed"}
		for _, engine := range engines {
			slots.Engines = append(slots.Engines, "Replicated"+engine)
		}
	}
	text, err := fillSlots(grantsText, slots)
	return splitStatements(strings.TrimSuffix(strings.TrimSpace(text), ";")), err
}

func passwordDigest(password string) string {
	sum := sha256.Sum256([]byte(password))
	return quoteString(hex.EncodeToString(sum[:]))
}
