package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// Setup over HTTP: the catalogue, the tokens and the share links of the token's account, as with
// the commands export, apply, token and share.

// addSetup adds the operations that need the scope admin.
func (s *server) addSetup(router *gin.Engine) {
	admin := router.Group("", s.requireScope(catalogue.ScopeAdmin))
	limited := admin.Group("", s.limitTime)
	change := func(handle func(*gin.Context) (any, error)) gin.HandlerFunc {
		return respondWith(admitTo(s.setups, handle))
	}
	getRoutes(admin)("/catalogue", s.getCatalogue, yamlType, results.JSON)
	admin.PUT("/catalogue", change(s.putCatalogue))
	getRoutes(limited)("/tokens", s.listTokens)
	limited.POST("/tokens", change(s.createToken))
	limited.DELETE("/tokens/:id", change(s.revokeToken))
	limited.POST("/shares", change(s.createShare))
}

const yamlType = "application/yaml"

// yamlTypes has the valid content types of YAML. JSON is YAML.
var yamlTypes = []string{yamlType, "application/x-yaml", "text/yaml", results.JSON}

// maxCatalogue is the maximum size of a catalogue in bytes. 500 campaigns with 20 variations
// have this size. Reading it allocates 70 MB, and at most 1.2 GB if all of it are keys or brackets.
const maxCatalogue = 1 << 20

// jsonTag ends the entity tag of the catalogue as JSON: a strong tag names one representation.
const jsonTag = "-json"

// catalogueTag returns the entity tag of a version of the account's catalogue.
func catalogueTag(version uint64, kind string) string {
	suffix := ""
	if kind == results.JSON {
		suffix = jsonTag
	}
	return fmt.Sprintf(`"%016x%s"`, version, suffix)
}

// matchesVersion reports whether If-Match names a version. A proxy that compresses may have made
// the tag weak, which does not change the version that it means.
func matchesVersion(tags string, version uint64) bool {
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == catalogueTag(version, yamlType) || tag == catalogueTag(version, results.JSON) {
			return true
		}
	}
	return false
}

// getCatalogue returns the catalogue of the token's account.
func (s *server) getCatalogue(c *gin.Context) (any, error) {
	if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
		return nil, err
	}
	owned, _ := s.accountResources(c)
	kind, write := c.GetString(typeKey), owned.CatalogueFile().WriteYAML
	if kind == results.JSON {
		write = owned.CatalogueFile().WriteJSON
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return nil, err
	}
	return reply{kind: kind, body: text.Bytes(), keep: revalidated, tag: catalogueTag(owned.Version, kind)}, nil
}

// putCatalogue changes the account's catalogue to what the body declares.
func (s *server) putCatalogue(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun", "prune")
	booleans := []string{"true", "false"}
	dryRun, prune := p.OneOf("dryRun", booleans) == "true", p.OneOf("prune", booleans) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	tags := strings.Join(c.Request.Header.Values("If-Match"), ",")
	if tags == "" && !dryRun {
		return nil, newRefusal(http.StatusPreconditionRequired, "precondition_required",
			"send the header If-Match with the ETag of GET /catalogue, which protects the changes of others, or If-Match: * to overwrite them")
	}
	replaces := func(version uint64) bool { return tags == "" || matchesVersion(tags, version) }
	var answered reply
	err := s.useYAML(c, maxCatalogue, func(text io.Reader) (err error) {
		if err := s.Catalogue.RefreshSnapshot(c.Request.Context()); err != nil { // another server may have changed it
			return changeFailure(c, err, "repeat the request")
		}
		if owned, _ := s.accountResources(c); !replaces(owned.Version) {
			return versionChanged() // without parsing the body, so the retries of many clients are cheap
		}
		file, err := catalogue.ReadYAML(text)
		var found faults.List // ApplyToVersion returns them with the faults that it finds
		if err != nil && !errors.As(err, &found) {
			return bodyProblem(err)
		}
		file.AccountID, file.Replaces, file.Prune = tokenOf(c).AccountID, replaces, prune
		answered, err = s.applyCatalogue(c, file, dryRun)
		return err
	})
	return answered, err
}

// applyCatalogue changes the account's catalogue and returns the changes.
func (s *server) applyCatalogue(c *gin.Context, file catalogue.File, dryRun bool) (reply, error) {
	var changes []catalogue.Change
	var version uint64
	ctx, cancel := results.WithDeadline(byToken(c), s.options.Timeout) // starts after the body was received from the client
	defer cancel()
	err := within(ctx, func() (err error) {
		changes, version, err = s.Catalogue.ApplyToVersion(ctx, file, dryRun)
		return err
	})
	var found faults.List
	switch {
	case errors.As(err, &found):
		return reply{}, &problemError{bodyFaults("invalid_catalogue", found)}
	case errors.Is(err, catalogue.ErrVersionChanged):
		return reply{}, versionChanged()
	case err != nil:
		return reply{}, changeFailure(c, err, "get the catalogue to see whether it was")
	}
	body, err := render.JSON(struct {
		DryRun  bool               `json:"dryRun"`
		Changes []catalogue.Change `json:"changes"`
	}{dryRun, append([]catalogue.Change{}, changes...)})
	return reply{kind: results.JSON, body: body, keep: notKept, tag: catalogueTag(version, yamlType)}, err
}

func versionChanged() error {
	return newRefusal(http.StatusPreconditionFailed, "precondition_failed",
		"the catalogue has changed since the ETag in If-Match; nothing was changed: get it again, repeat your edit and send it with the new ETag")
}

// useYAML calls use with the body, which is YAML or JSON, of at most most bytes. It does so for
// one request at a time, because a parsed body takes much memory.
func (s *server) useYAML(c *gin.Context, most int64, use func(io.Reader) error) error {
	if !hasContentType(c, yamlTypes) {
		return newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/yaml or application/json")
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, most); err != nil {
		return err
	}
	if err := s.bodies.parsed.Acquire(c.Request.Context(), 1); err != nil {
		return err
	}
	defer s.bodies.parsed.Release(1)
	return use(bytes.NewReader(held.text))
}

// maxFaultValue is the maximum length of the value of a fault in a response, in bytes.
const maxFaultValue = 200

// bodyFaults returns the problem for a body with faults.
func bodyFaults(code string, found faults.List) *problem {
	p := &problem{Status: http.StatusBadRequest, Code: code, Detail: "the body is invalid; nothing was changed"}
	for _, f := range found {
		if f.Line > 0 {
			f.Detail = fmt.Sprintf("line %d: %s", f.Line, f.Detail)
		}
		p.Errors = append(p.Errors, fault{"body", f.Name, faults.Clip(f.Value, maxFaultValue), f.Detail})
	}
	return p
}
