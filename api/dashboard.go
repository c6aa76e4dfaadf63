package api

import (
	"lifthouse/api/dashboard"

	"github.com/gin-gonic/gin"
)

// servePage adds the routes of the dashboard: the page at / and its files under
// /dashboard.
func servePage(router *gin.Engine) {
	for _, f := range dashboard.Files() {
		path := "/dashboard/" + f.Name
		if f.Name == dashboard.Index {
			path = "/"
		}
		d := document{kind: f.Kind, body: func() ([]byte, error) { return f.Body, nil }, csp: dashboard.Policy}
		router.GET(path, d.serve)
		router.HEAD(path, d.serve)
	}
}
