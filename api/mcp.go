package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"lifthouse/api/mcp"

	"github.com/gin-gonic/gin"
)

// MCP returns the server of the Model Context Protocol.
func (a *API) MCP() *mcp.Server { return a.server.mcp }

// answerMCP answers a message of the Model Context Protocol. It rejects batches, because the rate of a token counts
// requests.
func (s *server) answerMCP(c *gin.Context) {
	if origin := c.GetHeader("Origin"); origin != "" && !s.allowsOrigin(origin) {
		writeProblem(c, &problem{Status: http.StatusForbidden, Code: "origin_not_allowed", Detail: "the Origin must be that of --public-url or one of --cors-origin"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, mcp.MaxMessage))
	if err != nil {
		writeProblem(c, problemOf(bodyProblem(err)))
		return
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		writeProblem(c, &problem{Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body must be one message, not a batch"})
		return
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	token := tokenOf(c)
	s.mcp.ServeCaller(c.Writer, c.Request, mcp.Caller{AccountID: token.AccountID, WebsiteID: token.WebsiteID})
}

// allowsOrigin reports whether pages of an origin may call tools. Comparing it with the host is not enough: a page can
// give its own host name the address of this server (DNS rebinding).
func (s *server) allowsOrigin(origin string) bool {
	public, err := url.Parse(s.options.PublicURL)
	return err == nil && strings.EqualFold(origin, public.Scheme+"://"+public.Host) || slices.Contains(s.options.Origins, "*") || slices.Contains(s.options.Origins, origin)
}
