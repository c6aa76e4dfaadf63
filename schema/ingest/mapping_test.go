package ingest

import (
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

func TestMappingScalarsAreLiteral(t *testing.T) {
	m := must.Get(ReadMapping(strings.NewReader(`
fields:
  visitor: 007
  websiteId: {value: 010}
  region: {value: "007"}
  city: {value: 1_000}
  device: {column: d, map: {010: 0x1F, "011": true}, default: 1e3}
  os: {column: o, map: {a: b}, default: ''}
  utmTerm:
    value: |-
      two
      lines
events:
  - when: {column: d, equals: 08}
  - when: {column: d, not: .50}
`)))(t)
	f := m.Fields
	for want, have := range map[string]string{
		"007":        f["visitor"].Column,
		"010":        string(f["websiteId"].Value),
		"1_000":      string(f["city"].Value),
		"0x1F":       string(f["device"].Map["010"]),
		"true":       string(f["device"].Map["011"]),
		"1e3":        string(*f["device"].Default),
		"":           string(*f["os"].Default),
		"two\nlines": string(f["utmTerm"].Value),
		"08":         string(*m.Events[0].When[0].Equals),
		".50":        string(*m.Events[1].When[0].Not),
	} {
		if want != have {
			t.Errorf("%q is decoded as %q", want, have)
		}
	}
	if region := f["region"].Value; region != "007" {
		t.Errorf("a quoted \"007\" is decoded as %q", region)
	}
	if _, err := ReadMapping(strings.NewReader("fields: {websiteId: {value: [1]}}")); err == nil || !strings.Contains(err.Error(), "must be a string, a number or a boolean") {
		t.Errorf("a list for a value: %v", err)
	}
}

func TestReadMappingDocuments(t *testing.T) {
	for content, want := range map[string]string{
		"fields: {visitor: a}\n---\nfields: {visitor: b}\n":               "the file has several documents",
		"fields: {visitor: a}\n" + strings.Repeat("# and so on\n", 1<<21): "longer than 16777216 bytes",
	} {
		if _, err := ReadMapping(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
	long := "fields: {\n" + strings.Repeat("# and so on\n", 100_000) + "visitors: a}"
	if _, err := ReadMapping(strings.NewReader(long)); err == nil || !strings.Contains(err.Error(), "fields.visitors") {
		t.Errorf("an error after 1 MiB gives %.200v", err)
	}
	if _, err := ReadMapping(strings.NewReader("---\nfields: {visitor: a}\n...\n")); err != nil {
		t.Errorf("one document between document markers: %v", err)
	}
}

func TestReadMappingRejectsIneffectiveKeys(t *testing.T) {
	_, err := ReadMapping(strings.NewReader(`
fields:
  city: {value: c, default: x}
  region: {value: r, map: {a: b}}
  time: {value: "1", format: unix}
`))
	for _, want := range []string{"fields.city.default: requires a column", "fields.region: map and format require a column", "fields.time: map and format require a column"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestEmptyCellIsNotAbove(t *testing.T) {
	limit := -1.0
	c := mappedCondition{Condition: Condition{Column: "c", Above: &limit}}
	if holds, err := c.holdsFor(""); holds || err != nil {
		t.Errorf("an empty cell: %v, %v", holds, err)
	}
	if _, err := c.holdsFor("x"); err == nil {
		t.Error("a text is accepted as a number")
	}
}
