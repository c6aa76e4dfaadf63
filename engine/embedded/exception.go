package embedded

import (
	"regexp"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Error codes of ClickHouse that this package returns or checks.
const (
	codeBadArguments = 36
	codeNoData       = 108
)

var (
	exceptionStart = regexp.MustCompile(`^Code: (\d+)\. (DB::[A-Za-z:]*Exception): `)
	exceptionName  = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)(?: \(version [^)]*\))?\.?\s*$`)
)

// newException parses an error text of the engine, such as
//
//	Code: 60. DB::Exception: Unknown table expression identifier 't'. (UNKNOWN_TABLE)
//
// A text without a code gets code 1002, UNKNOWN_EXCEPTION.
func newException(text string) *clickhouse.Exception {
	e := &clickhouse.Exception{Code: 1002, Name: "DB::Exception", Message: text}
	if m := exceptionStart.FindStringSubmatch(text); m != nil {
		if code, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			e.Code = int32(code)
		}
		e.Name, e.Message = m[2], text[len(m[0]):]
	}
	if m := exceptionName.FindStringSubmatch(text); m != nil {
		e.CodeName = m[1]
	}
	return e
}
