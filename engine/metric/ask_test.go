package metric

import (
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
)

func TestParseAsk(t *testing.T) {
	for text, want := range map[string]string{
		"count(any)": "",
		"converted(purchase) for device in ('mobile')":                     "converted(purchase) for device = 'mobile'",
		"sum(purchase.value)/count(purchase) by device,country":            "sum(purchase.value) / count(purchase) by device, country",
		"count(purchase) within 7d for plan = 'by' or os = '' by loggedIn": "count(purchase) within 7d for os = '' or plan = 'by' by loggedIn",
		"sum(purchase.items.revenue) for not os = 'iOS' split items.brand": "sum(purchase.items.revenue) for os != 'iOS' split items.brand",
		"count(purchase) split size":                                       "",
	} {
		ask, err := ParseAsk(text, shop)
		checkCanonical(t, text, want, ask, err)
	}
}

func TestFaultsOfAsk(t *testing.T) {
	for text, want := range map[string]string{
		"count(any) fro device = 'x'":      `at character 12: expected within, "/", for, by, split or the end, found "fro"`,
		"count(any) for value > 3":         `at character 16: unknown attribute "value": one of device, country, channel, browser, os, visitorType, city, utmSource, utmMedium, utmCampaign and 7 more`,
		"count(any) for device = 'x' or":   "at character 31: expected an attribute, such as device or country, found the end",
		"count(any) by":                    "at character 14: expected an attribute, such as device or country, found the end",
		"count(any) by device, device":     "at character 23: the breakdown has device twice",
		"count(any) by device, os, plan":   "at character 27: a breakdown has at most two attributes",
		"count(any) by devices":            `at character 15: unknown attribute "devices": device, or one of country, channel, browser, os, visitorType, city, utmSource, utmMedium, utmCampaign, referrer and 6 more`,
		"count(any) split value":           "at character 18: value is a number: a split needs a text, such as items.product",
		"count(any) split ":                "at character 18: expected a text, such as items.product, or the name of a property, found the end",
		"count(any) by os split payment":   "at character 18: a question has a breakdown or a split: omit by or split",
		"count(any) split payment by os":   `at character 26: expected the end, found "by"`,
		"count(any) / count(any) - 1":      `at character 25: found "-": a metric is one quantity, or a ratio of two`,
		"count(purchse) for devise = 'x'":  `at character 7: unknown goal "purchse": purchase, or one of add_to_cart, begin_checkout, 'any', 'it''s done', angefragt:größe-L, #17; at character 20: unknown attribute "devise": device, or one of country, channel, browser, os, visitorType, city, utmSource, utmMedium, utmCampaign, referrer and 6 more`,
		"count(any) for device = 'x' by ?": `at character 32: '?' is not allowed here`,
	} {
		_, err := ParseAsk(text, shop)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		check.Equal(t, err.Error(), want, "%s", text)
	}
}

func TestCompleteAsk(t *testing.T) {
	for text, want := range map[string]string{
		"count(any) ":                    "11: keyword within, operator /, keyword for, keyword by, keyword split",
		"count(any) for pl":              "15: attribute plan",
		"count(any) for plan = 'a' ":     "26: keyword and, keyword or, keyword by, keyword split",
		"count(any) by d":                "14: attribute device",
		"count(any) by device, pl":       "22: attribute plan",
		"count(any) split items.c":       "23: field category",
		"count(any) split co":            "17: property coupon",
		"count(any) for device = 'mob":   "24: values of device with mob",
		"count(any) split items.brand b": "29: ",
	} {
		check.Equal(t, completionText(CompleteAsk(text, len(text), shop)), want, "%q", text)
	}
}

func TestBuildConditions(t *testing.T) {
	device := Field{OfAttribute, "device", false}
	value := numberFields[0]
	c := JoinConditions(nil, CompareText(device, In, "b", "a", "b"), CompareText(device, Like, "x"), nil)
	check.Equal(t, c.String(), "device = 'x' and device in ('a', 'b')")
	check.That(t, JoinConditions(nil, nil) == nil, "no conditions are one")
	m := parsed(t, "sum(purchase.value where value > 1) / count(@view)")
	atLeast := m.WithCondition(CompareNumber(value, GreaterEqual, 300_000)).WithRange(Range{0, 48 * time.Hour})
	check.Equal(t, atLeast.String(),
		"sum(purchase.value where value > 1 and value >= 30) within 2d / count(@view) within 2d")
	check.Equal(t, atLeast.HasRange(), true)
	check.Equal(t, m.HasRange(), false)
	check.Equal(t, m.String(), "sum(purchase.value where value > 1) / count(@view)", "the original")
}
