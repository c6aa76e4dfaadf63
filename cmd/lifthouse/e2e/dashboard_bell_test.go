package e2e

import (
	"fmt"
	"testing"
)

// TestTheBellShowsWhatHappened stops a campaign on the page. The bell counts the message, lists it with its author, and
// leads to the campaign.
func TestTheBellShowsWhatHappened(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.token)
	v.shows("Free delivery banner")
	v.click(".bell")
	v.shows("Notifications")
	before := evaluated[int](v, `document.querySelectorAll(".messages > li").length`)
	v.click("dialog .buttons button")
	v.click("#switch")
	v.shows("Stop “Free delivery banner”?")
	v.click("#confirm")
	v.shows("■ stopped")
	evaluated[bool](v, fmt.Sprintf(`new Promise(async (done) => {
		const headers = {Authorization: "Bearer " + sessionStorage.getItem("lifthouse.token")};
		while ((await (await fetch("/deliveries", {headers})).json()).length === %d);
		done(true);
	})`, before))
	v.open("/")
	v.until(`document.querySelector(".bell .count")?.textContent === "1"`)
	v.click(".bell")
	v.shows("The campaign was stopped by token")
	v.picture("bell")
	v.click(".messages a")
	v.until(`location.search === "?campaign=12" && !document.querySelector("dialog")`)
	v.until(`!document.querySelector(".bell .count")`)
	if len(v.problems) > 0 {
		t.Errorf("the browser complains: %q", v.problems)
	}
}
