package competitors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"lifthouse/loadgen/measure"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// DuckDB is a DuckDB instance in its own process.
type DuckDB struct {
	input   io.WriteCloser
	output  *bufio.Reader
	process *exec.Cmd
}

// StartDuckDB starts DuckDB with the script duckdb.js in the folder, which must
// contain the npm packages of its package.json. DuckDB uses as many threads as the
// store.
func StartDuckDB(ctx context.Context, folder string) (*DuckDB, error) {
	script := filepath.Join(folder, "duckdb.js")
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		return nil, fmt.Errorf("DuckDB is not installed in %s: run npm ci there", folder)
	}
	cmd := exec.CommandContext(ctx, "node", script, strconv.Itoa(runtime.GOMAXPROCS(0))) //nolint:gosec // the folder of the caller
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start DuckDB: %w", err)
	}
	return &DuckDB{input: input, output: bufio.NewReader(output), process: cmd}, nil
}

// Close ends the process.
func (d *DuckDB) Close() error {
	return errors.Join(d.input.Close(), d.process.Wait())
}

// response is what duckdb.js writes for a statement.
type response struct {
	Rows   []duckRow `json:"rows"`
	WallMS float64   `json:"wallMs"`
	CPUMS  float64   `json:"cpuMs"`
	Error  string    `json:"error"`
}

// duckRow is a row of a statement: [variation, dimension, visitors, totals, squares].
type duckRow []json.RawMessage

// runStatement runs a statement.
func (d *DuckDB) runStatement(sql string, parameters map[string]any) (*response, error) {
	request, err := json.Marshal(map[string]any{"sql": sql, "parameters": parameters})
	if err != nil {
		return nil, err
	}
	if _, err := d.input.Write(append(request, '\n')); err != nil {
		return nil, fmt.Errorf("send a statement to DuckDB: %w", err)
	}
	line, err := d.output.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read the answer of DuckDB: %w", err)
	}
	var answer response
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("read the answer of DuckDB: %w", err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("DuckDB: %s\n%s", answer.Error, sql)
	}
	return &answer, nil
}

// peerRow converts a row.
func (row duckRow) peerRow() (p peerRow, err error) {
	if len(row) != 5 {
		return p, fmt.Errorf("DuckDB returned %d columns, want 5", len(row))
	}
	var visitors string // DuckDB writes BIGINT as text
	for i, into := range []any{&p.variation, &p.dimension, &visitors, &p.totals, &p.squares} {
		if err := json.Unmarshal(row[i], into); err != nil {
			return p, fmt.Errorf("column %d of DuckDB: %w", i+1, err)
		}
	}
	p.visitors, err = strconv.ParseUint(visitors, 10, 64)
	return p, err
}

// functions defines ClickHouse functions that DuckDB lacks.
var functions = []string{
	"CREATE OR REPLACE MACRO toFloat64(x) AS CAST(x AS DOUBLE)",
	"CREATE OR REPLACE MACRO toString(x) AS CAST(x AS VARCHAR)",
	"CREATE OR REPLACE MACRO uniqExact(x) AS count(DISTINCT x)",
}

// loadDuckDB copies the events to DuckDB, and makes the table of visitors there.
func (r *runner) loadDuckDB(ctx context.Context) error {
	r.Progress("copying the events to DuckDB")
	folder, err := os.MkdirTemp("", "loadgen-competitors-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "events.parquet")
	text, err := sqlText("parquet.sql", &slots{})
	if err != nil {
		return err
	}
	if err := r.Conn.Exec(ctx, text, append(r.questionParameters(MeanValue), clickhouse.Named("file", file))...); err != nil {
		return fmt.Errorf("write the events to a Parquet file: %w", err)
	}
	visitors, err := sqlText("visitors_rows.sql", &slots{dialect: duckDB, Goals: r.goalNames()})
	if err != nil {
		return err
	}
	parameters := r.duckParameters(MeanValue)
	parameters["file"] = file
	for _, sql := range append(functions, "CREATE OR REPLACE TABLE events AS SELECT * FROM read_parquet($file)", visitors) {
		if _, err := r.DuckDB.runStatement(sql, parameters); err != nil {
			return err
		}
	}
	version, err := r.DuckDB.runStatement("SELECT version()", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(version.Rows[0][0], &r.result.DuckDB)
}

// duckParameters returns the parameters of the queries in DuckDB. Times are
// milliseconds since 1970.
func (r *runner) duckParameters(question Question) map[string]any {
	parameters := map[string]any{
		"from": r.from.UnixMilli(), "to": question.windowEnd(r.from, r.to).UnixMilli(), "goal_value": storedGoalValue,
	}
	for n, id := range r.GoalIDs {
		parameters[string(goalColumn(n+1))] = id
	}
	return parameters
}

// runDuckDB runs the queries of a computation in DuckDB.
func (r *runner) runDuckDB(c *computation) (answers []peerAnswer, cost measure.Cost, err error) {
	for _, text := range c.queries {
		answer, err := r.DuckDB.runStatement(text, r.duckParameters(c.question))
		if err != nil {
			return nil, cost, err
		}
		cost.WallMS += answer.WallMS
		cost.CPUMS += answer.CPUMS
		var rows peerAnswer
		for _, row := range answer.Rows {
			converted, err := row.peerRow()
			if err != nil {
				return nil, cost, err
			}
			rows = append(rows, converted)
		}
		answers = append(answers, rows)
	}
	return answers, cost, nil
}
