//go:build js && wasm

// The program audit runs in a browser: the page of api/dashboard/audit calls its function auditTable.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"syscall/js"

	"lifthouse/engine/audit"
	"lifthouse/schema/faults"
)

// answer is the result of auditTable, as JSON.
type answer struct {
	Audit  *audit.Audit `json:"audit,omitempty"`
	CSV    string       `json:"csv,omitempty"`
	Faults []string     `json:"faults,omitempty"`
}

func main() {
	js.Global().Set("auditTable", js.FuncOf(func(_ js.Value, given []js.Value) any {
		body, err := json.Marshal(answerTable(given[0].String(), given[1].Float()))
		if err != nil {
			panic(err) // no number of an audit is infinite
		}
		return string(body)
	}))
	select {}
}

// answerTable judges the tests of a table, or says what is wrong with it. mde is their minimum effect, as a fraction.
func answerTable(text string, mde float64) (a answer) {
	table, err := audit.ReadTable(strings.NewReader(text))
	if found, is := errors.AsType[faults.List](err); is {
		for i := range found {
			a.Faults = append(a.Faults, found[i].String())
		}
		return a
	}
	var file bytes.Buffer
	a.Audit = audit.New(table, mde)
	if err := a.Audit.WriteCSV(&file); err != nil {
		panic(err) // a buffer takes everything
	}
	a.CSV = file.String()
	return a
}
