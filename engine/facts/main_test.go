package facts_test

import (
	"fmt"
	"os"
	"testing"

	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Println("wrong:", runChild(dir))
		os.Exit(1)
	}
	schematest.Main(m)
}
