package e2e

import (
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestTheBellShowsWhatHappened stops a campaign on the page. The bell counts the message, lists it with its author, and
// leads to the campaign.
func TestTheBellShowsWhatHappened(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.token)
	v.shows("Free delivery banner")
	v.click("#switch")
	v.shows("Stop “Free delivery banner”?")
	v.click("#confirm")
	v.shows("■ stopped")
	evaluated[bool](v, `new Promise(async (done) => {
		const headers = {Authorization: "Bearer " + sessionStorage.getItem("lifthouse.token")};
		while (!(await (await fetch("/deliveries", {headers})).text()).includes("campaign.stopped"));
		done(true);
	})`)
	v.open("/")
	v.until(`document.querySelector(".bell .count")`)
	v.click(".bell")
	v.shows("The campaign was stopped by token")
	v.until(`!document.querySelector(".bell .count")`)
	v.picture("bell")
	evaluated[bool](v, `[...document.querySelectorAll(".messages > li")].find((li) => li.innerText.includes("stopped")).querySelector("a").click() ?? true`)
	v.until(`location.search === "?campaign=12" && !document.querySelector("dialog")`)
}

// TestAutoStopIsSetOnThePage sets auto-stop with a token of the scope admin. Others see it, and may not change it.
func TestAutoStopIsSetOnThePage(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.newToken("admin"))
	v.until(allThere)
	v.choose("[name=autoStop]", "rollBack")
	v.until(`document.querySelector("[name=autoStop]")?.value === "rollBack" && !document.querySelector("[name=autoStop]").disabled`)
	v.picture("autostop")
	v.click(".top .sign-out")
	v.signIn(v.newToken("read"))
	v.shows("Auto-stop: at roll back")
	check.That(t, !evaluated[bool](v, `document.querySelector("[name=autoStop]") !== null`), "a token of the scope read is offered to change auto-stop")
}
