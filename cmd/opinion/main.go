//go:build js && wasm

// The program opinion runs in a browser: the page of api/dashboard/opinion calls its function judgeTable.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"syscall/js"

	"lifthouse/engine/opinion"
	"lifthouse/schema/faults"
)

// answer is the result of judgeTable, as JSON.
type answer struct {
	Opinion *opinion.Opinion `json:"opinion,omitempty"`
	CSV     string           `json:"csv,omitempty"`
	Faults  []string         `json:"faults,omitempty"`
}

func main() {
	js.Global().Set("judgeTable", js.FuncOf(func(_ js.Value, given []js.Value) any {
		body, err := json.Marshal(answerTable(given[0].String(), given[1].Float()))
		if err != nil {
			panic(err) // no number of an opinion is infinite
		}
		return string(body)
	}))
	select {}
}

// answerTable judges the tests of a table, or says what is wrong with it. mde is their minimum effect, as a fraction.
func answerTable(text string, mde float64) (a answer) {
	table, err := opinion.ReadTable(strings.NewReader(text))
	if found, is := errors.AsType[faults.List](err); is {
		for i := range found {
			a.Faults = append(a.Faults, found[i].String())
		}
		return a
	}
	var file bytes.Buffer
	a.Opinion = opinion.New(table, mde)
	if err := a.Opinion.WriteCSV(&file); err != nil {
		panic(err) // a buffer takes everything
	}
	a.CSV = file.String()
	return a
}
