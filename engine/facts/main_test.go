package facts_test

import (
	"fmt"
	"os"
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		_, _ = fmt.Fprintln(os.Stdout, "wrong:", runChild(dir))
		os.Exit(1)
	}
	schematest.Main(m)
}
