package loadgen_test

import (
	"log/slog"
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // servers log each request
	schematest.Main(m)
}
