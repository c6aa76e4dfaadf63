package fold

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/worlds"
)

// text returns all of a row. Rows with no and with empty lists are equal.
func text(r FactRow) string { return fmt.Sprintf("%+v", r) }

// apply returns how often each row is there after changes.
func apply(stored []FactRow, changes []Change) map[string]int {
	count := map[string]int{}
	for _, r := range stored {
		count[text(r)]++
	}
	for _, c := range changes {
		if c.Cancels {
			count[text(*c.FactRow)]--
		} else {
			count[text(*c.FactRow)]++
		}
	}
	return count
}

// drawn returns some of the rows, some of them twice.
func (w world) drawn(rows []FactRow) []FactRow {
	var some []FactRow
	for _, r := range rows {
		for range worlds.Pick(w, 1, 0, 1, 1, 2) {
			some = append(some, r)
		}
	}
	return some
}

// checkChanges checks that changes turn the stored rows into the wanted ones.
func checkChanges(t rapid.TB, stored, wanted []FactRow) {
	t.Helper()
	changes := AppendChanges(nil, stored, wanted)
	before, after, want := apply(stored, nil), apply(stored, changes), apply(wanted, nil)
	least := 0
	for row := range after {
		check.Equal(t, after[row], want[row], "times %s", row)
		least += max(before[row]-want[row], want[row]-before[row])
	}
	check.Equal(t, len(changes), least, "changes")
	added := map[string]bool{}
	for i, c := range changes {
		check.That(t, i == 0 || !c.Cancels || changes[i-1].Cancels,
			"change %d cancels a row after a change that adds one", i)
		if added[text(*c.FactRow)] = added[text(*c.FactRow)] || !c.Cancels; c.Cancels &&
			want[text(*c.FactRow)] >= before[text(*c.FactRow)] {
			t.Errorf("canceled although it is wanted: %+v", c.FactRow)
		}
	}
	for row := range added {
		check.That(t, !added[row] || want[row] > before[row], "added although it is stored: %s", row)
	}
}

func TestChangesTurnStoredRowsIntoWantedOnes(t *testing.T) {
	checkWorlds(t, 500, func(t *rapid.T, w world) {
		events := w.visitor(7)
		wanted := rowsOf(events)
		checkChanges(t, rowsOf(events[:w.IntN(len(events)+1)]), wanted)
		checkChanges(t, w.drawn(wanted), w.drawn(wanted))
		checkChanges(t, nil, wanted)
		checkChanges(t, wanted, nil)
		changes := AppendChanges(nil, wanted, rowsOf(events))
		check.That(t, len(changes) == 0, "changes between equal rows: %+v", changes)
	})
}

// Rows that were read from the store have empty lists instead of none.
func TestEmptyListsAreNoChange(t *testing.T) {
	row := FactRow{Subject: subjects[0], Grain: OfVisitor, Visitor: 7}
	stored := row
	stored.Later, stored.LaterKinds = []uint64{}, []uint8{}
	changes := AppendChanges(nil, []FactRow{stored}, []FactRow{row})
	check.That(t, len(changes) == 0, "changes %+v", changes)
}

func TestChangesAreAppended(t *testing.T) {
	earlier := []Change{{&FactRow{Visitor: 1}, false}, {&FactRow{Visitor: 2}, true}}
	changes := AppendChanges(slices.Clone(earlier), []FactRow{{Visitor: 3}}, []FactRow{{Visitor: 4}})
	want := slices.Concat(earlier, []Change{{&FactRow{Visitor: 3}, true}, {&FactRow{Visitor: 4}, false}})
	check.That(t, reflect.DeepEqual(changes, want), "changes %+v, want %+v", changes, want)
}

// others returns rows that differ from a row in one number, text or list.
func others(row FactRow) map[string]FactRow {
	all := map[string]FactRow{}
	var visit func(name string, field func(r *FactRow) reflect.Value)
	visit = func(name string, field func(r *FactRow) reflect.Value) {
		r := row
		r.Later, r.LaterKinds = slices.Clone(row.Later), slices.Clone(row.LaterKinds)
		switch v := field(&r); v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				visit(name+"."+v.Type().Field(i).Name, func(r *FactRow) reflect.Value { return field(r).Field(i) })
			}
			return
		case reflect.Array, reflect.Slice:
			for i := range v.Len() {
				visit(fmt.Sprint(name, "[", i, "]"), func(r *FactRow) reflect.Value { return field(r).Index(i) })
			}
			return
		case reflect.String:
			v.SetString(v.String() + "0")
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		default:
			return // the sums of a cell
		}
		all[name] = r
	}
	visit("Row", func(r *FactRow) reflect.Value { return reflect.ValueOf(r).Elem() })
	for name := range all {
		if strings.HasPrefix(name, "Row.Views.") { // they are not stored
			delete(all, name)
		}
	}
	longer := row
	longer.Later, longer.LaterKinds = append(slices.Clone(row.Later), 9), append(slices.Clone(row.LaterKinds), 1)
	all["longer lists"] = longer
	moved := row
	moved.Variation, moved.Attributes = row.Variation+row.Attributes[:1], row.Attributes[1:]
	all["moved text"] = moved
	return all
}

func TestEveryDifferenceOfRowsIsAChange(t *testing.T) {
	row := FactRow{
		Subject: subjects[4], Grain: OfVisitor, Goal: 1, Variation: "1", Visitor: 7, Attributes: "a\x00b", First: 1,
		Since: 2, Number: 3,
		MultiExposed: 4, Seen: 5, Digest: 6, Later: []uint64{1, 2}, LaterKinds: []uint8{3, 4},
	}
	differing := others(row)
	check.That(t, len(differing) >= 32, "only %d fields are checked", len(differing))
	for what, other := range differing {
		changes, want := AppendChanges(nil, []FactRow{row}, []FactRow{other}), []Change{{&row, true}, {&other, false}}
		check.That(t, reflect.DeepEqual(changes, want), "%s: changes %+v, want %+v", what, changes, want)
	}
}
