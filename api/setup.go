package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// Setup over HTTP: the catalogue, the tokens and the share links of the token's account, as with
// the commands export, apply, token and share.

// addSetup adds the operations that need the scope admin.
func (s *server) addSetup(router *gin.Engine) {
	admin := router.Group("", s.requireScope(catalogue.ScopeAdmin))
	getRoutes(admin)("/catalogue", s.getCatalogue, yamlType, results.JSON)
	admin.PUT("/catalogue", respondWith(s.admitChange(s.putCatalogue)))
	limited := router.Group("", s.requireScope(catalogue.ScopeAdmin), s.limitTime)
	getRoutes(limited)("/tokens", s.listTokens(false))
	limited.POST("/tokens", respondWith(s.admitChange(s.createToken)))
	limited.DELETE("/tokens/:id", respondWith(s.admitChange(s.revokeToken(false))))
	getRoutes(limited)("/shares", s.listTokens(true))
	limited.POST("/shares", respondWith(s.admitChange(s.createShare)))
	limited.DELETE("/shares/:id", respondWith(s.admitChange(s.revokeToken(true))))
}

const yamlType = "application/yaml"

// yamlTypes has the valid content types of YAML. JSON is YAML.
var yamlTypes = []string{yamlType, "application/x-yaml", "text/yaml", results.JSON}

// maxCatalogue is the maximum size of a catalogue in bytes. 500 campaigns with 20 variations
// have this size, and take 200 MB while they are parsed.
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

// matchedVersions returns the versions that If-Match names, or nil for *. given is false
// without the header. A proxy that compresses may have made the tag weak, and tools lose the
// quotes: neither changes which version is meant.
func matchedVersions(header http.Header) (versions []uint64, given bool) {
	tags := strings.TrimSpace(strings.Join(header.Values("If-Match"), ","))
	if tags == "" || tags == "*" {
		return nil, tags != ""
	}
	versions = []uint64{}
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`)
		if version, err := strconv.ParseUint(strings.TrimSuffix(tag, jsonTag), 16, 64); err == nil {
			versions = append(versions, version)
		}
	}
	return versions, true
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

// appliedFile is the outcome of a new catalogue.
type appliedFile struct {
	DryRun  bool            `json:"dryRun"`
	Changes []appliedChange `json:"changes"`
}

type appliedChange struct {
	Kind   string         `json:"kind"`
	ID     int64          `json:"id"`
	Name   string         `json:"name"`
	Change string         `json:"change"` // created, changed or archived
	Fields []appliedField `json:"fields,omitempty"`
	Shares []appliedShare `json:"shares,omitempty"`
	Notes  []string       `json:"notes,omitempty"`
}

// appliedField is a field before and after the change. A field that is not set is absent.
type appliedField struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

type appliedShare struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

func newAppliedFile(changes []catalogue.Change, dryRun bool) appliedFile {
	shown := appliedFile{DryRun: dryRun, Changes: []appliedChange{}}
	for i := range changes {
		change := &changes[i]
		one := appliedChange{Kind: change.Kind, ID: change.ID, Name: change.Name, Change: "changed", Notes: change.Notes}
		switch {
		case change.Created:
			one.Change = "created"
		case change.Archived:
			one.Change = "archived"
		}
		for _, f := range change.Fields {
			one.Fields = append(one.Fields, appliedField{f.Field, json.RawMessage(f.Before), json.RawMessage(f.After)})
		}
		for _, share := range change.Shares {
			one.Shares = append(one.Shares, appliedShare(share))
		}
		shown.Changes = append(shown.Changes, one)
	}
	return shown
}

// putCatalogue changes the account's catalogue to what the body declares.
func (s *server) putCatalogue(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun", "prune")
	booleans := []string{"true", "false"}
	dryRun, prune := p.OneOf("dryRun", booleans) == "true", p.OneOf("prune", booleans) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	versions, given := matchedVersions(c.Request.Header)
	if !given && !dryRun {
		return nil, &problemError{&problem{
			Status: http.StatusPreconditionRequired, Code: "precondition_required",
			Detail: "send the header If-Match with the ETag of GET /catalogue, which protects the changes of others, or If-Match: * to overwrite them",
		}}
	}
	var answered reply
	err := s.useYAML(c, maxCatalogue, func(text io.Reader) (err error) {
		if owned, _ := s.accountResources(c); versions != nil && !slices.Contains(versions, owned.Version) {
			return versionChanged() // without parsing the body, so the retries of many clients are cheap
		}
		file, err := catalogue.ReadYAML(text)
		var faults catalogue.Faults // ApplyToVersion returns them with the faults that it finds
		if err != nil && !errors.As(err, &faults) {
			return bodyProblem(err)
		}
		file.AccountID, file.Versions, file.Prune = tokenOf(c).AccountID, versions, prune
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
		changes, version, err = s.catalogue.ApplyToVersion(ctx, file, dryRun)
		return err
	})
	var faults catalogue.Faults
	switch {
	case errors.As(err, &faults):
		return reply{}, bodyFaults("invalid_catalogue", faults)
	case errors.Is(err, catalogue.ErrVersionChanged):
		return reply{}, versionChanged()
	case err != nil:
		return reply{}, changeFailure(c, err, "get the catalogue to see whether it was")
	}
	body, err := render.JSON(newAppliedFile(changes, dryRun))
	return reply{kind: results.JSON, body: body, keep: notKept, tag: catalogueTag(version, yamlType)}, err
}

func versionChanged() error {
	return &problemError{&problem{
		Status: http.StatusPreconditionFailed, Code: "precondition_failed",
		Detail: "the catalogue has changed since the ETag in If-Match; nothing was changed: get it again, repeat your edit and send it with the new ETag",
	}}
}

// useYAML calls use with the body, which is YAML or JSON, of at most most bytes. It does so for
// one request at a time, because a parsed body takes much memory.
func (s *server) useYAML(c *gin.Context, most int64, use func(io.Reader) error) error {
	if !hasContentType(c, yamlTypes) {
		return &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "Content-Type must be application/yaml or application/json"}}
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
func bodyFaults(code string, faults catalogue.Faults) error {
	p := &problem{Status: http.StatusBadRequest, Code: code, Detail: "the body is invalid; nothing was changed"}
	for _, f := range faults {
		if f.Line > 0 {
			f.Detail = fmt.Sprintf("line %d: %s", f.Line, f.Detail)
		}
		if len(f.Value) > maxFaultValue {
			f.Value = strings.ToValidUTF8(f.Value[:maxFaultValue], "") + "…"
		}
		p.Errors = append(p.Errors, fault{"body", f.Path, f.Value, f.Detail})
	}
	return &problemError{p}
}
