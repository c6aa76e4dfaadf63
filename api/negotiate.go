package api

import (
	"net/http"
	"strings"

	"lifthouse/api/negotiation"

	"github.com/gin-gonic/gin"
)

// typeKey is the context key of the negotiated content type.
const typeKey = "type"

// negotiateType selects the content type of the response.
func negotiateType(c *gin.Context, offers []string) error {
	kind := negotiation.PreferredType(c.Request.Header.Values("Accept"), offers)
	if kind == "" {
		return &problemError{&problem{Status: http.StatusNotAcceptable, Code: "not_acceptable", Detail: "have " + strings.Join(offers, ", ")}}
	}
	c.Set(typeKey, kind)
	return nil
}
