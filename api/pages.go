package api

import (
	"net/http"

	"lifthouse/api/dashboard"
	"lifthouse/api/docs"
	"lifthouse/api/negotiation"

	"github.com/gin-gonic/gin"
)

// addPages adds the routes of the OpenAPI document, and of the dashboard: its page
// at / and its files under /dashboard.
func addPages(router *gin.Engine) {
	for _, d := range docs.All() {
		addFile(router, d.Path, &file{d.Kind, d.Policy, "", d.Body})
	}
	for _, f := range dashboard.Files() {
		path, robots := "/dashboard/"+f.Name, ""
		if f.Name == dashboard.Index {
			path, robots = "/", "noindex" // share links must not be found by search engines
		}
		addFile(router, path, &file{f.Kind, dashboard.Policy, robots, func() ([]byte, error) { return f.Body, nil }})
	}
}

// file is a body that is the same for all clients.
type file struct {
	kind   string // content type
	policy string // Content-Security-Policy; empty: none
	robots string // X-Robots-Tag; empty: none
	body   func() ([]byte, error)
}

func addFile(router *gin.Engine, path string, f *file) {
	router.GET(path, f.serveBody)
	router.HEAD(path, f.serveBody)
}

func (f *file) serveBody(c *gin.Context) {
	body, err := f.body()
	if err != nil {
		writeProblem(c, problemOf(err))
		return
	}
	tag := negotiation.EntityTag(string(body))
	c.Header("ETag", tag)
	c.Header("Cache-Control", "no-cache")
	if f.robots != "" {
		c.Header("X-Robots-Tag", f.robots)
	}
	if f.policy != "" {
		c.Header("Content-Security-Policy", f.policy)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Referrer-Policy", "no-referrer")
	}
	if negotiation.MatchesTag(c.Request, tag) {
		notModified(c)
		return
	}
	c.Data(http.StatusOK, f.kind, body)
}
