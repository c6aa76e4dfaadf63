package source

import (
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }
