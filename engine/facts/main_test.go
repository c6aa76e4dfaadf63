package facts_test

import (
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }
