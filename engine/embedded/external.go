package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
)

// external is a table that is sent with a statement and visible only to that
// statement. It holds rows too numerous for parameters. The library does not
// support external tables, so a temporary table of the session replaces them.
type external struct {
	name, structure, format string
	rows                    []byte
}

// statementField is the form field that contains the statement. The other
// fields contain the rows of external tables.
const statementField = "query"

// readForm reads the statement and its external tables from a form. It removes
// the descriptions of the tables from the URL's values.
func (q *request) readForm(r *http.Request, values url.Values) error {
	form, err := r.MultipartReader()
	if err != nil {
		return badRequest("form: %v", err)
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return badRequest("form: %v", err)
		}
		if err := q.readPart(part, values); err != nil {
			return err
		}
	}
}

func (q *request) readPart(part *multipart.Part, values url.Values) error {
	name := part.FormName()
	content, err := io.ReadAll(part)
	if err != nil {
		return fmt.Errorf("embedded: read the external table %s: %w", name, err)
	}
	if name == statementField && part.FileName() == "" && !values.Has(name+"_structure") {
		q.sql = string(content)
		return nil
	}
	table := external{name: name, structure: values.Get(name + "_structure"), format: values.Get(name + "_format"), rows: content}
	if !identifier.MatchString(name) || table.structure == "" || table.format == "" {
		return badRequest("the external table %q lacks %s_structure or %s_format", name, name, name)
	}
	values.Del(name + "_structure")
	values.Del(name + "_format")
	q.external = append(q.external, table)
	return nil
}

// createExternalTables creates the statement's external tables. After an error the session must
// be discarded, and the tables with it.
func (e *Engine) createExternalTables(ctx context.Context, s *session, tables []external) error {
	for _, table := range tables {
		if err := s.execStatement("CREATE TEMPORARY TABLE " + quoteName(table.name) + " (" + table.structure + ") ENGINE = Memory"); err != nil {
			return err
		}
		if table.isEmpty() {
			continue
		}
		rows := &request{sql: "INSERT INTO " + quoteName(table.name), format: table.format, rows: io.NopCloser(bytes.NewReader(table.rows))}
		if err := e.insertRows(ctx, s, rows); err != nil {
			return err
		}
	}
	return nil
}

// isEmpty reports whether the table is a block without rows. The library does not
// treat such a block as an insert. A block begins with the numbers of its
// columns and rows.
func (t *external) isEmpty() bool {
	_, n := binary.Uvarint(t.rows)
	rows, _ := binary.Uvarint(t.rows[max(n, 0):])
	return rows == 0
}

func (s *session) dropExternalTables(tables []external) error {
	for _, table := range tables {
		if err := s.execStatement("DROP TEMPORARY TABLE " + quoteName(table.name)); err != nil {
			return err
		}
	}
	return nil
}
