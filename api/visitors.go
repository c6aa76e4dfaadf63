package api

import (
	"net/http"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
)

// parquetType is the content type of Parquet files.
const parquetType = "application/vnd.apache.parquet"

// visitorSlots is the maximum number of concurrent files of visitors. They have an admission of their own, because a
// slow client must not hold up reports.
const visitorSlots = 2

// sendVisitors returns the handler of an operation that sends the visitors of a report as a Parquet file. It sends the
// file while it reads the visitors. If that fails, it aborts the connection.
func (s *API) sendVisitors(operation query.Operation) gin.HandlerFunc {
	return func(c *gin.Context) {
		p, err := s.planVisitors(c, operation)
		if err == nil && c.Request.Method != http.MethodHead {
			var leave func()
			leave, err = s.files.AcquireSlot(c.Request.Context())
			if err == nil {
				defer leave()
				err = s.Engine.WriteVisitors(c.Request.Context(), p, &fileWriter{c, p})
			}
		}
		if err != nil {
			failAnswer(c, err)
			return
		}
		setFileHeaders(c, p)
		c.Writer.WriteHeaderNow()
	}
}

// planVisitors returns the plan of the report whose visitors are requested.
func (s *API) planVisitors(c *gin.Context, operation query.Operation) (*plan.Plan, error) {
	if err := negotiateType(c, []string{parquetType}); err != nil {
		return nil, err
	}
	asked, err := s.readQuery(c, operation, query.ParseVisitors, parquetType)
	if err != nil {
		return nil, err
	}
	return asked.Plan, nil
}

func setFileHeaders(c *gin.Context, p *plan.Plan) {
	c.Header("Content-Type", parquetType)
	name := fileName(p.Subject, "visitors", c.Request.URL.RawQuery)
	c.Header("Content-Disposition", `attachment; filename="`+name+`.parquet"`)
	c.Header("Cache-Control", notKept)
	c.Header(gzhttp.HeaderNoCompression, "1")
}

// fileWriter sends a file. Its headers are set with the first bytes, because an error before them is a problem.
type fileWriter struct {
	*gin.Context
	plan *plan.Plan
}

// sendTime is the maximum time to send a part of a file.
const sendTime = time.Minute

func (w *fileWriter) Write(part []byte) (int, error) {
	if !w.Writer.Written() {
		setFileHeaders(w.Context, w.plan)
	}
	if err := http.NewResponseController(w.Writer).SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return 0, err
	}
	return w.Writer.Write(part)
}
