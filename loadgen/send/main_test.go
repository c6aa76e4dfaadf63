package send_test

import (
	"log/slog"
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // discard request logs
	schematest.Main(m)
}
