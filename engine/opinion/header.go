package opinion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// header is what the cells of a row are as names of columns.
type header struct {
	columns []column
	counts  map[role]int    // of columns that name no variation
	labels  map[string]bool // of variations with visitors
}

// newHeader reads the names of columns.
func newHeader(cells []string) *header {
	h := &header{columns: make([]column, len(cells)), counts: map[role]int{}, labels: map[string]bool{}}
	for i, cell := range cells {
		c := readColumn(cell)
		h.columns[i] = c
		switch {
		case c.label == "":
			h.counts[c.role]++
		case c.role == visitorsRole && !isTotal(c.label):
			h.labels[c.label] = true
		}
	}
	h.assignExperience()
	return h
}

// assignExperience sets the role of a column called experience: a test for Convert, and a variation of a campaign for
// Personizely.
func (h *header) assignExperience() {
	at := slices.IndexFunc(h.columns, func(c column) bool {
		return c.role == nameRole && strings.HasPrefix(strings.ToLower(c.header), "experience")
	})
	hasOtherName := h.counts[nameRole] > 1
	if at >= 0 && hasOtherName && h.counts[variationRole] == 0 {
		h.columns[at].role = variationRole
	}
}

// findLayout returns the layout of the table below the header, and false if the row is no header. A row of a name and
// other texts can only be the first header.
func (h *header) findLayout(isFirst bool) (layout, bool) {
	results := h.counts[convertedRole] + h.counts[rateRole] + h.counts[meanRole] + h.counts[totalRole]
	namesNumbers := h.counts[visitorsRole] == 1 && results > 0 && !slices.ContainsFunc(h.columns, column.isNumber)
	switch {
	case len(h.labels) >= leastVariations:
		return columnsByLabel, true
	case namesNumbers || h.counts[sumsRole] > 0:
		return linePerVariation, true
	case isFirst && h.counts[nameRole] > 0 && h.counts[noRole] >= leastVariations:
		return columnByVariation, true
	}
	return linePerVariation, false
}

// isNumber reports whether the cell of a header is a number.
func (c column) isNumber() bool {
	_, err := strconv.ParseFloat(c.header, 64)
	return err == nil
}

// unreadColumns returns the names of the columns that are not read: those without a known role, and those of a
// variation without visitors.
func (h *header) unreadColumns(l layout) []string {
	if l == columnByVariation {
		return nil
	}
	var unread []string
	for _, c := range h.columns {
		hasNoVisitors := c.label != "" && !h.labels[c.label]
		if c.header != "" && (c.role == noRole || hasNoVisitors) {
			unread = append(unread, c.header)
		}
	}
	return unread
}

// readHeader reports whether a row is a header, which begins a table.
func (t *Table) readHeader(r row) bool {
	h := newHeader(r.cells)
	layout, isHeader := h.findLayout(t.columns == nil)
	if !isHeader {
		return false
	}
	if unread := h.unreadColumns(layout); len(unread) > 0 {
		t.addNote(r.line, strings.Join(unread, ","), "columns left out: %s", strings.Join(unread, ", "))
	}
	t.columns = h.columns
	t.layout = layout
	t.KnowsShipped = t.KnowsShipped || h.counts[shippedRole] > 0
	if t.titleLine == 0 {
		t.title = fmt.Sprintf("Test of line %d", r.line)
	}
	t.titleLine = 0
	return true
}
