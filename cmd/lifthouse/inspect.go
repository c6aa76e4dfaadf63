package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/schema/ingest"
)

// inspectFiles prints the columns, types and first rows of files. Beside each file it also
// writes a mapping file to edit, unless there is one.
func (p *program) inspectFiles(ctx context.Context, files []string, format string) error {
	for _, file := range files {
		path := file
		if path == "-" {
			return usageError{errors.New("--inspect: must name a file, not standard input")}
		}
		path = p.absolutePath(file)
		in, err := ingest.InspectFile(ctx, path, ingest.Options{Format: format})
		if err != nil {
			return err
		}
		if err := p.showInspection(file, in); err != nil {
			return err
		}
		if err := p.draftMapping(path, file, in); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) showInspection(file string, i *ingest.Inspection) error {
	separated := ""
	if i.Separator != 0 {
		separated = fmt.Sprintf(", separator %q", i.Separator)
	}
	if i.Encoding != "" {
		separated += ", encoding " + i.Encoding
	}
	p.printLine("%s: %s%s, the first %s", file, i.Format, separated, terminal.CountWithNoun(i.Rows, "row"))
	fields := map[string]string{}
	for field, column := range i.GuessColumns() {
		fields[column.Name] = field
	}
	p.printLine("")
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "COLUMN\tTYPE\tEMPTY\tVALUES\tPROBABLY\tEXAMPLES")
	for _, c := range i.Columns {
		kind := string(c.Type)
		if c.Comma {
			kind += ", decimal comma"
		}
		if c.Grouped != "" {
			kind += ", thousands separators"
		}
		distinct := strconv.Itoa(c.Distinct)
		if c.More {
			distinct += "+"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", tableCell(c.Name), kind, c.Empty, distinct, fields[c.Name], tableCell(strings.Join(c.Values[:min(3, len(c.Values))], ", ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	p.printLine("\nThe first rows:\n")
	for _, row := range i.First {
		shown := make([]string, len(row))
		for i, value := range row {
			shown[i] = tableCell(value)
		}
		_, _ = fmt.Fprintln(table, "  "+strings.Join(shown, "\t"))
	}
	return table.Flush()
}

// maxCell is the number of characters of a cell that are shown.
const maxCell = 40

// tableCell returns a value as it is shown in a table.
func tableCell(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '·'
		}
		return r
	}, value)
	if text := []rune(value); len(text) > maxCell {
		return string(text[:maxCell-1]) + "…"
	}
	return value
}

// draftMapping writes a mapping beside a file. It does not overwrite an existing mapping.
func (p *program) draftMapping(path, file string, i *ingest.Inspection) error {
	mapping, shown := path+".mapping.yaml", file+".mapping.yaml"
	f, err := os.OpenFile(mapping, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the user edits and shares it
	if errors.Is(err, fs.ErrExist) {
		p.printLine("\n%s exists and was kept. Import the file with: lifthouse import -m %s %s", shown, shown, file)
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteString(i.DraftMapping(filepath.Base(path))); err != nil {
		return errors.Join(err, f.Close())
	}
	p.printLine("\nWrote %s. Check it, then: lifthouse import --dry-run -m %s %s", shown, shown, file)
	return f.Close()
}
