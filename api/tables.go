package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/tables"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
)

const (
	// tableSlots is the maximum number of tables that are read at the same time. They have an admission of their own,
	// because they must not hold up reports.
	tableSlots = 2
	// maxTable is the maximum size of a table that is kept in memory. A larger one is sent while it is read, without
	// ranges.
	maxTable = 32 << 20
	// rangesAge is how long ranges are those of the last file, whatever has changed since: a program that reads ranges
	// needs all of them from one file.
	rangesAge = time.Minute
)

// tableTypes are the content types of the formats.
var tableTypes = map[tables.Format]string{
	tables.Parquet: parquetType, tables.CSV: "text/csv; charset=utf-8",
	tables.JSON: "application/json; charset=utf-8", tables.NDJSON: lineType,
}

// errTooLarge ends the reading of a table whose length is asked for and which is not kept.
var errTooLarge = errors.New("the table is larger than what is kept")

// listTables returns the tables and their columns.
func (s *API) listTables(*gin.Context) (any, error) {
	return struct {
		Contract int            `json:"contract"`
		Tables   []tables.Table `json:"tables"`
	}{tables.Contract, tables.All}, nil
}

// tableReader returns the reader of tables.
func (s *API) tableReader() tables.Reader {
	return tables.Reader{
		Engine: s.Engine, Summaries: s.Summaries, Catalogue: s.Catalogue, Outbox: s.Outbox, Notes: s.Notes,
		Documents: s.Documents,
	}
}

// sendTable sends a table as a file.
func (s *API) sendTable(c *gin.Context) {
	if err := s.answerTable(c); err != nil {
		failAnswer(c, err)
	}
}

// tableRequest is a request for a table.
type tableRequest struct {
	query.Table
	table  *tables.Table
	format tables.Format
	owned  *catalogue.AccountResources
	key    string // of the file in the cache
}

// parseTable parses a request.
func (s *API) parseTable(c *gin.Context, now time.Time) (*tableRequest, error) {
	var names, formats []string
	for i := range tables.All {
		names = append(names, tables.All[i].Name)
	}
	for _, format := range tables.Formats {
		formats = append(formats, string(format))
	}
	name, format, asked, err := query.ParseTable(c.Param("file"), c.Request.URL.RawQuery, names, formats, now)
	if err != nil {
		return nil, err
	}
	r := &tableRequest{Table: asked, table: tables.FindTable(name), format: tables.Format(format)}
	r.owned, r.WebsiteID, err = s.searchedWebsite(c, asked.WebsiteID)
	r.key = fmt.Sprint("table ", r.owned.ID, " ", name, ".", format, " ", r.Table)
	return r, err
}

// answerTable answers a request for a table. It may return an error after a part of the answer is sent.
func (s *API) answerTable(c *gin.Context) error {
	now := time.Now()
	asOf := s.Engine.AsOf(now)
	r, err := s.parseTable(c, now)
	if err != nil {
		return err
	}
	last, version := s.results.LastFile(r.key)
	if last != nil && isRangeOfAny(c.Request) && now.Sub(last.At) < rangesAge {
		return sendFile(c, r, last)
	}
	ctx := c.Request.Context()
	found, err := s.tableReader().OpenTable(ctx, r.table, r.owned, r.Table)
	if err != nil {
		return err
	}
	c.Header(asOfHeader, query.FormatInstant(asOf))
	c.Header("Cache-Control", briefly)
	if found.IsStale {
		c.Header("Cache-Control", notKept)
		c.Header("Warning", staleWarning)
	}
	if last != nil && found.Version != "" && version == found.Version {
		return sendFile(c, r, last)
	}
	return s.readTable(ctx, c, r, found)
}

// isRangeOfAny reports whether a request asks for a range and does not say of which file.
func isRangeOfAny(request *http.Request) bool {
	return request.Header.Get("Range") != "" && request.Header.Get("If-Range") == ""
}

// readTable reads a table, and sends it: as a file that is kept, or, if it is large, while it is read.
func (s *API) readTable(ctx context.Context, c *gin.Context, r *tableRequest, found *tables.Snapshot) error {
	leave, err := s.tables.AcquireSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	spooled := &spool{Context: c, request: r, most: s.maxTable}
	_, err = found.WriteFile(ctx, spooled, r.format)
	switch {
	case errors.Is(err, errTooLarge): // HEAD
		setTableHeaders(c, r)
		c.Writer.WriteHeaderNow()
		return nil
	case err != nil || spooled.streams:
		return err
	}
	digest := sha256.Sum256(spooled.kept)
	file := &results.File{
		Body: spooled.kept, Tag: `"` + base64.RawURLEncoding.EncodeToString(digest[:16]) + `"`, At: time.Now(),
	}
	s.results.StoreFile(r.key, cmp.Or(found.Version, file.Tag), file)
	return sendFile(c, r, file)
}

// setTableHeaders sets the headers of a table.
func setTableHeaders(c *gin.Context, r *tableRequest) {
	c.Header("Content-Type", tableTypes[r.format])
	c.Header("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.%s"`, r.table.Name, r.format))
	if r.format == tables.Parquet { // it is compressed
		c.Header(gzhttp.HeaderNoCompression, "1")
	}
}

// sendFile sends a file, or a range of it.
func sendFile(c *gin.Context, r *tableRequest, file *results.File) error {
	header := c.Request.Header
	if of := header.Get("If-Range"); header.Get("Range") != "" && of != "" && of != file.Tag {
		c.Header("Content-Range", "bytes */"+strconv.Itoa(len(file.Body)))
		return newRefusal(http.StatusRequestedRangeNotSatisfiable, "range_gone",
			"the file has changed since the one of If-Range: read it from its start")
	}
	setTableHeaders(c, r)
	tag := file.Tag
	isCompressed := r.format != tables.Parquet && header.Get("Range") == "" && header.Get("Accept-Encoding") != ""
	if isCompressed { // its bytes are others than those of a range
		tag = "W/" + tag
	}
	c.Header("ETag", tag)
	const leastRate = 256 << 10 // bytes a second
	deadline := time.Now().Add(sendTime + time.Duration(len(file.Body)/leastRate)*time.Second)
	if err := http.NewResponseController(c.Writer).SetWriteDeadline(deadline); err != nil {
		return err
	}
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(file.Body))
	return nil
}

// spool keeps what is written to it. If that is too much, it sends it, and everything that follows.
type spool struct {
	*gin.Context
	request *tableRequest
	most    int // bytes to keep
	kept    []byte
	streams bool
}

// Write keeps or sends a part of the table.
func (w *spool) Write(part []byte) (int, error) {
	switch {
	case w.streams:
		return len(part), writePart(w.Context, part)
	case len(w.kept)+len(part) <= w.most:
		w.kept = append(w.kept, part...)
		return len(part), nil
	case w.Request.Method == http.MethodHead:
		return 0, errTooLarge
	}
	setTableHeaders(w.Context, w.request)
	w.streams = true
	for _, one := range [][]byte{w.kept, part} {
		if err := writePart(w.Context, one); err != nil {
			return 0, err
		}
	}
	w.kept = nil
	return len(part), nil
}

// worthTable returns the table worth of a website as CSV, of one goal and one metric if they are asked for.
func (s *API) worthTable(
	ctx context.Context, owned *catalogue.AccountResources, asked query.Programme,
) ([]byte, error) {
	of := query.Table{WebsiteID: asked.WebsiteID, GoalID: asked.GoalID, Metric: asked.Metric}
	found, err := s.tableReader().OpenTable(ctx, tables.FindTable("worth"), owned, of)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err = found.WriteFile(ctx, &text, tables.CSV)
	return text.Bytes(), err
}
