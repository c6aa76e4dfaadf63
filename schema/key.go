package schema

import (
	_ "embed" // the statement
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// NameKind is the kind of what an id names.
type NameKind string

// The kinds of names. All but variations, which are of a campaign, are of a website.
const (
	NameCampaign  NameKind = "campaign"
	NameVariation NameKind = "variation"
	NameGoal      NameKind = "goal"
	NameAttribute NameKind = "attribute" // an own one, and each of its values
	NameProperty  NameKind = "property"  // with texts
	NameNumber    NameKind = "number"    // a property with numbers
)

// NamedID is a campaign, a variation or a goal of a website in events.
type NamedID struct {
	WebsiteID  int64
	Kind       NameKind
	CampaignID int64 // of a variation; otherwise 0
	ID         int64
}

// FirstKeyID is the least id that is computed from a key. All of them are below MaxID + 1, twice as large: they are
// exact in JavaScript, and rarely collide: 10,000 keys of a website do with a probability of 1.1e-8.
const (
	FirstKeyID = int64(1) << 52
	MaxID      = int64(1)<<53 - 1
)

// ControlKey names control instead of the variation 0.
const ControlKey = "control"

// maxKey is the maximum size of a key in bytes.
const maxKey = 200

// IDOf returns the id of a campaign, a variation or a goal from its text in an event or a catalogue, and its key. An
// integer is the id itself, and has no key. Every other text, such as 2.0, is a key, from which the id is computed:
//
//	2^52 + xxHash64(website "\0" kind "\0" key) mod 2^52
//
// The website is empty for variations. The error says what is allowed.
func IDOf(website int64, kind NameKind, text string) (id int64, key string, err error) {
	least := int64(1)
	if kind == NameVariation {
		least = 0
		if text == ControlKey {
			return 0, "", nil
		}
	}
	id, err = strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && id >= least && id <= MaxID:
		return id, "", nil
	case err == nil && id < least, text == "":
		return 0, "", fmt.Errorf("must be an integer from %d, or a key", least)
	}
	if fault := KeyFault(text); fault != "" {
		return 0, "", errors.New(fault)
	}
	of := ""
	if kind != NameVariation {
		of = strconv.FormatInt(website, 10)
	}
	hash := xxhash.Sum64String(of + "\x00" + string(kind) + "\x00" + text)
	return FirstKeyID + int64(hash%uint64(FirstKeyID)), text, nil //nolint:gosec // below 2^53
}

// KeyFault returns what is allowed instead of a key, or an empty string if the key is valid.
func KeyFault(key string) string {
	switch {
	case len(key) == 0 || len(key) > maxKey:
		return fmt.Sprintf("a key must have 1 to %d bytes, has %d", maxKey, len(key))
	case !utf8.ValidString(key):
		return "a key must be UTF-8"
	case strings.ContainsFunc(key, unicode.IsControl):
		return "a key must not have control characters"
	case strings.TrimSpace(key) != key:
		return "a key must not begin or end with white space"
	}
	return ""
}
